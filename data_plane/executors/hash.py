"""Hashes the files of a shard; a file that changes meanwhile never gets a hash."""

import hashlib
import os
import threading
from contextlib import ExitStack
from typing import Any

from blake3 import blake3

from data_plane.executor import (
    Context,
    Hashed,
    HashResult,
    HashTask,
    ToHash,
    Unhashed,
    explain,
    state_of,
)
from data_plane.jail import Jail
from mediaplane.protocol.values import HashAlgorithm

_BLOCK_BYTES = 1 << 20
# Reading into one buffer per thread is as fast as mapping the file, and unlike a mapping it
# survives a file that is cut off while it is read.
_buffers = threading.local()


def hash_files(task: HashTask, ctx: Context) -> HashResult:
    """Hash every file that still is as it was scanned."""
    result = HashResult()
    with ExitStack() as stack:
        jails: dict[bytes, Jail | None] = {}
        for file in task.files:
            ctx.control.check()
            if file.root not in jails:
                jails[file.root] = _jail(file.root, ctx, stack)
            jail = jails[file.root]
            if jail is None:
                result.left += 1
                continue
            outcome = _hash_file(file, jail, ctx)
            if isinstance(outcome, Hashed):
                result.hashed.append(outcome)
            else:
                result.unhashed.append(outcome)
            ctx.control.items += 1
    return result


def _jail(root: bytes, ctx: Context, stack: ExitStack) -> Jail | None:
    try:
        return stack.enter_context(ctx.open_jail(root))
    except OSError:
        return None  # not mounted: its files are left for another time


def _hash_file(file: ToHash, jail: Jail, ctx: Context) -> Hashed | Unhashed:
    done = ctx.control.bytes
    try:
        descriptor = jail.open_file(file.rel_path)
        try:
            before = os.fstat(descriptor)
            if state_of(before) != (file.size_bytes, file.mtime_ns):
                return _changed(file)
            digest = _digest(file, descriptor, ctx)
            if _version(os.fstat(descriptor)) != _version(before):
                return _changed(file)
            return Hashed(file, digest)
        finally:
            os.close(descriptor)
    except OSError as error:
        return Unhashed(file, *explain(error))
    finally:
        ctx.control.bytes = done + file.size_bytes


def _version(info: os.stat_result) -> tuple[int, int, int]:
    # Who writes to a file can put its mtime back, but not its ctime.
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _changed(file: ToHash) -> Unhashed:
    return Unhashed(file, "changed", "It has changed since the scan; scan the library again.")


def _digest(file: ToHash, descriptor: int, ctx: Context) -> bytes:
    hasher: Any = blake3() if file.algorithm is HashAlgorithm.BLAKE3 else hashlib.sha256()
    view, total = _buffer(), 0
    # A file that grows while it is read could keep us here for ever.
    while total <= file.size_bytes and (length := os.readv(descriptor, [view])):
        hasher.update(view[:length])
        total += length
        ctx.control.bytes += length
        ctx.control.check()
    return bytes(hasher.digest())


def _buffer() -> memoryview:
    if not hasattr(_buffers, "view"):
        _buffers.view = memoryview(bytearray(_BLOCK_BYTES))
    view: memoryview = _buffers.view
    return view
