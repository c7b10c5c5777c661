"""Hashes one file, in the state in which it was scanned or not at all."""

import hashlib
import os
import threading
from collections.abc import Callable
from typing import Any

from blake3 import blake3

from data_plane.executor import Hashed, ToHash, Unhashed, explain, state_of
from mediaplane.protocol.values import HashAlgorithm

_BLOCK_BYTES = 1 << 20
# Reading into one buffer per thread is as fast as mapping the file, and unlike a mapping it
# survives a file that is cut off while it is read.
_buffers = threading.local()


def hash_file(
    file: ToHash, open_file: Callable[[bytes], int], read: Callable[[int], None]
) -> Hashed | Unhashed:
    """Hash a file that still is as it was scanned; `read` is told of the bytes as they come."""
    try:
        descriptor = open_file(file.rel_path)
        try:
            before = os.fstat(descriptor)
            if state_of(before) != (file.size_bytes, file.mtime_ns):
                return _changed(file)
            digest = _digest(file, descriptor, read)
            if _version(os.fstat(descriptor)) != _version(before):
                return _changed(file)
            return Hashed(file, digest)
        finally:
            os.close(descriptor)
    except OSError as error:
        return Unhashed(file, *explain(error))


def _version(info: os.stat_result) -> tuple[int, int, int]:
    # Who writes to a file can put its mtime back, but not its ctime.
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _changed(file: ToHash) -> Unhashed:
    return Unhashed(file, "changed", "It has changed since the scan; scan the library again.")


def _digest(file: ToHash, descriptor: int, read: Callable[[int], None]) -> bytes:
    hasher: Any = blake3() if file.algorithm is HashAlgorithm.BLAKE3 else hashlib.sha256()
    view, total = _buffer(), 0
    # No further than it was long: one that grows while it is read could keep us here for ever, and
    # is found out afterwards.
    while total < file.size_bytes and (length := os.readv(descriptor, [view])):
        hasher.update(view[:length])
        total += length
        read(length)
    return bytes(hasher.digest())


def _buffer() -> memoryview:
    if not hasattr(_buffers, "view"):
        _buffers.view = memoryview(bytearray(_BLOCK_BYTES))
    view: memoryview = _buffers.view
    return view
