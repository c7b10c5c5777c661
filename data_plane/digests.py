"""Hashes one file, in the state in which it was scanned or not at all."""

import hashlib
import os
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from blake3 import blake3

from data_plane.file_states import state_of
from mediaplane.protocol.values import HashAlgorithm

# What the prefix hash of a file covers: its first bytes and its last. Formats that begin alike,
# such as films of one camera, often keep what tells them apart at the end.
HEAD_BYTES = 16 << 10
TAIL_BYTES = 4 << 10
# Fits the cache of a processor: with a megabyte it took up to twice the time.
_BLOCK_BYTES = 128 << 10
# How much is read before somebody is told of it: often enough to stop at once.
_TOLD_BYTES = 1 << 20
# In place of an algorithm: the prefix hash is wanted.
ENDS = "ends"
_HASHERS: dict[str, Any] = {HashAlgorithm.BLAKE3: blake3, HashAlgorithm.SHA256: hashlib.sha256}
CHANGED = ("changed", "It has changed since the scan; scan the library again.")

# Who writes to a file can put its mtime back, but not its ctime. The inode tells of a file that
# took the place of the one that was found before it was opened.
_version = attrgetter("st_ino", "st_dev", "st_size", "st_mtime_ns", "st_ctime_ns")

# The digest of a file, or the code and the message of why it has none.
Answer = bytes | tuple[str, str]

# Reading into one buffer per thread is as fast as mapping the file, and unlike a mapping it
# survives a file that is cut off while it is read.
_buffers = threading.local()


def hash_file(
    descriptor: int,
    size_bytes: int,
    mtime_ns: int,
    algorithm: str,
    read: Callable[[int], None],
) -> Answer:
    """Hash an open file that still is as it was scanned, and close it.

    `read` is told of the bytes as they come, and may raise what ends this early.
    """
    try:
        before = os.fstat(descriptor)
        if state_of(before) != (size_bytes, mtime_ns):
            return CHANGED
        digest = _digest(algorithm, size_bytes, descriptor, read)
        return CHANGED if _version(os.fstat(descriptor)) != _version(before) else digest
    finally:
        os.close(descriptor)


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    content = os.pread(descriptor, length, offset)
    while len(content) < length and (
        more := os.pread(descriptor, length - len(content), offset + len(content))
    ):
        content += more
    return content


def hash_at_once(
    descriptor: int, found: os.stat_result, size_bytes: int, mtime_ns: int, algorithm: str
) -> Answer:
    """Hash a file, or its ends, in one go and close it; `found` is what its name led to before."""
    try:
        if state_of(found) != (size_bytes, mtime_ns):
            return CHANGED
        if algorithm == ENDS:
            digest = _digest_ends(descriptor, size_bytes)
        elif size_bytes <= _BLOCK_BYTES:
            digest = _HASHERS[algorithm](_read_at(descriptor, 0, size_bytes)).digest()
        else:
            digest = _digest(algorithm, size_bytes, descriptor, lambda _length: None)
        return CHANGED if _version(os.fstat(descriptor)) != _version(found) else digest
    finally:
        os.close(descriptor)


def _digest_ends(descriptor: int, size_bytes: int) -> bytes:
    head = _read_at(descriptor, 0, HEAD_BYTES)
    return blake3(head + _read_at(descriptor, tail_offset(size_bytes), TAIL_BYTES)).digest()


def tail_offset(size_bytes: int) -> int:
    """Return where the last bytes begin that the prefix hash covers."""
    return max(HEAD_BYTES, size_bytes - TAIL_BYTES)


def _digest(algorithm: str, size_bytes: int, descriptor: int, read: Callable[[int], None]) -> bytes:
    hasher = _HASHERS[algorithm]()
    view = _buffer()
    blocks = [view]
    unread = told = size_bytes
    # No further than it was long: one that grows while it is read could keep us here for ever, and
    # is found out afterwards.
    while unread > 0 and (length := os.readv(descriptor, blocks)):
        hasher.update(view if length == _BLOCK_BYTES else view[:length])
        unread -= length
        if told - unread >= _TOLD_BYTES:
            read(told - unread)
            told = unread
    read(told - unread)
    return bytes(hasher.digest())


def _buffer() -> memoryview:
    if not hasattr(_buffers, "view"):
        _buffers.view = memoryview(bytearray(_BLOCK_BYTES))
    view: memoryview = _buffers.view
    return view
