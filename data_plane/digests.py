"""Hashes one file, in the state in which it was scanned or not at all."""

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blake3 import blake3

from data_plane.file_states import explain, state_of
from mediaplane.protocol.values import HashAlgorithm

# What the prefix hash of a file covers: its first bytes and its last. Formats that begin alike,
# such as films of one camera, often keep what tells them apart at the end.
HEAD_BYTES = 16 << 10
TAIL_BYTES = 4 << 10
# Fits the cache of a processor: with a megabyte it took up to twice the time.
BLOCK_BYTES = 128 << 10
# How much is read before somebody is told of it: often enough to stop at once.
_TOLD_BYTES = 1 << 20
# In place of an algorithm: the prefix hash is wanted.
ENDS = "ends"
HASHERS: dict[str, Any] = {HashAlgorithm.BLAKE3: blake3, HashAlgorithm.SHA256: hashlib.sha256}
CHANGED = ("changed", "It has changed since the scan; scan the library again.")

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
        return digest if is_same(os.fstat(descriptor), before) else CHANGED
    finally:
        os.close(descriptor)


def is_same(info: os.stat_result, before: os.stat_result) -> bool:
    """Tell whether a file is the one that it was before, and nobody has written to it."""
    return (
        # Who writes to a file can put its mtime back, but not its ctime.
        info.st_ctime_ns == before.st_ctime_ns
        and info.st_mtime_ns == before.st_mtime_ns
        and info.st_size == before.st_size
        # One that took the place of the one that was found, before it was opened.
        and info.st_ino == before.st_ino
        and info.st_dev == before.st_dev
    )


def read_at(descriptor: int, offset: int, length: int) -> bytes:
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
        elif size_bytes <= BLOCK_BYTES:
            digest = HASHERS[algorithm](read_at(descriptor, 0, size_bytes)).digest()
        else:
            digest = _digest(algorithm, size_bytes, descriptor, lambda _length: None)
        return digest if is_same(os.fstat(descriptor), found) else CHANGED
    finally:
        os.close(descriptor)


def hash_together(
    opened: Sequence[tuple[int, os.stat_result, int]], size_bytes: int, algorithm: str
) -> list[Answer]:
    """Hash files of one size, what they have in common once, and close them.

    Each comes with what its name led to before it was opened, and the time of change it is to have.
    """
    try:
        as_scanned = [
            descriptor
            for descriptor, found, mtime_ns in opened
            if state_of(found) == (size_bytes, mtime_ns)
        ]
        answers = _digest_together(algorithm, size_bytes, as_scanned)
        return [_unless_changed(answers, *one) for one in opened]
    finally:
        for descriptor, _found, _mtime_ns in opened:
            os.close(descriptor)


def _unless_changed(
    answers: Mapping[int, Answer], descriptor: int, found: os.stat_result, _mtime_ns: int
) -> Answer:
    answer = answers.get(descriptor, CHANGED)
    if isinstance(answer, bytes) and not is_same(os.fstat(descriptor), found):
        return CHANGED
    return answer


def _digest_together(
    algorithm: str, size_bytes: int, descriptors: Sequence[int]
) -> dict[int, Answer]:
    """Read files of one size in step; a hasher is shared by those that were alike so far.

    To compare a block takes a tenth of the time that hashing it takes.
    """
    answers: dict[int, Answer] = {}
    alike = [(HASHERS[algorithm](), descriptors)]
    for _offset in range(0, size_bytes, BLOCK_BYTES):
        alike = [part for hasher, these in alike for part in _read_on(hasher, these, answers)]
    for hasher, these in alike:
        answers.update(dict.fromkeys(these, bytes(hasher.digest())))
    return answers


def _read_on(
    hasher: Any, descriptors: Sequence[int], answers: dict[int, Answer]
) -> list[tuple[Any, list[int]]]:
    """Hash the next block of files that were alike, and tell apart those that are no longer."""
    block, other = _blocks()
    length = 0
    same: list[int] = []
    different: dict[bytes, list[int]] = {}
    for descriptor in descriptors:
        try:
            read = _fill(descriptor, other if same else block)
        except OSError as error:
            answers[descriptor] = explain(error)
            continue
        if not same:
            length = read
        # Whole ones are compared as they are; a part would be copied first.
        is_same = read == length and (
            not same or (block == other if read == BLOCK_BYTES else block[:read] == other[:read])
        )
        if is_same:
            same.append(descriptor)
        else:
            different.setdefault(bytes(other[:read]), []).append(descriptor)
    parts = []
    for content, these in different.items():
        apart = hasher.copy()
        apart.update(content)
        parts.append((apart, these))
    hasher.update(memoryview(block)[:length])
    return [(hasher, same), *parts]


def _fill(descriptor: int, block: bytearray) -> int:
    """Read the next block of a file; less only at its end."""
    length = os.readv(descriptor, [block])
    while 0 < length < len(block):
        more = os.readv(descriptor, [memoryview(block)[length:]])
        if not more:
            break
        length += more
    return length


def _digest_ends(descriptor: int, size_bytes: int) -> bytes:
    head = read_at(descriptor, 0, HEAD_BYTES)
    return blake3(head + read_at(descriptor, tail_offset(size_bytes), TAIL_BYTES)).digest()


def tail_offset(size_bytes: int) -> int:
    """Return where the last bytes begin that the prefix hash covers."""
    return max(HEAD_BYTES, size_bytes - TAIL_BYTES)


def _digest(algorithm: str, size_bytes: int, descriptor: int, read: Callable[[int], None]) -> bytes:
    hasher = HASHERS[algorithm]()
    view = _buffer()
    blocks = [view]
    unread = told = size_bytes
    # No further than it was long: one that grows while it is read could keep us here for ever, and
    # is found out afterwards.
    while unread > 0 and (length := os.readv(descriptor, blocks)):
        hasher.update(view if length == BLOCK_BYTES else view[:length])
        unread -= length
        if told - unread >= _TOLD_BYTES:
            read(told - unread)
            told = unread
    read(told - unread)
    return bytes(hasher.digest())


def _buffer() -> memoryview:
    return memoryview(_blocks()[0])


def _blocks() -> tuple[bytearray, bytearray]:
    if not hasattr(_buffers, "blocks"):
        _buffers.blocks = (bytearray(BLOCK_BYTES), bytearray(BLOCK_BYTES))
    blocks: tuple[bytearray, bytearray] = _buffers.blocks
    return blocks
