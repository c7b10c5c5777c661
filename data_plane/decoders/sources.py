"""Lets a demuxer seek in a file of which no block is fetched twice, and hashes it on the way.

Where a second pass follows, what no longer fits into memory waits for it in a spool, as far as a
decoder may write: only of a longer video that must be read through to learn its duration is the
rest fetched again.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from blake3 import blake3

from mediaplane.protocol.values import HashAlgorithm

# A file that is hashed is fetched as a whole, so in large blocks; of any other only what is needed.
_WHOLE_BLOCK_BYTES = 4 << 20
_PART_BLOCK_BYTES = 128 << 10
# Demuxers read an index at the end of a file first, and then on from its beginning; only then do
# they come to that end again. So what lies behind is forgotten, and what lies ahead is kept.
_KEPT_BYTES = 96 << 20
_HASHERS: dict[HashAlgorithm, Any] = {
    HashAlgorithm.BLAKE3: blake3,
    HashAlgorithm.SHA256: hashlib.sha256,
}


class Source:
    """A file to be demuxed; `bytes_read` counts what was fetched of it.

    The spool is a file that is empty, and is so again when all is read.
    """

    def __init__(self, fd: int, algorithm: HashAlgorithm | None, spool_fd: int) -> None:
        self.bytes_read = 0
        self.bytes_size = os.fstat(fd).st_size
        self._fd = fd
        self._position = 0
        # Bytes that are left out for a while; none to begin with.
        self._gap = range(self.bytes_size, self.bytes_size)
        self._hasher = _HASHERS[algorithm]() if algorithm else None
        self._block_bytes = _WHOLE_BLOCK_BYTES if algorithm else _PART_BLOCK_BYTES
        self._blocks: dict[int, bytes] = {}
        self._hashed_blocks = 0
        self._spool_fd = spool_fd
        self._spooled: set[int] = set()
        self._is_spooling = False

    def read(self, length: int) -> bytes:
        """Return the next bytes, up to the end of a block at most; none at the end of the file."""
        at = self._position
        if at >= self._gap.start:
            at += len(self._gap)
        else:
            length = min(length, self._gap.start - at)
        if at >= self.bytes_size:
            return b""
        index, offset = divmod(at, self._block_bytes)
        content = self._block(index)[offset : offset + length]
        self._position += len(content)
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to where the next bytes are read from."""
        end = self.bytes_size - len(self._gap)
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: end}[whence]
        self._position = max(0, base + offset)
        return self._position

    def peek(self, start: int, length: int) -> bytes:
        """Return some bytes, fewer at the end of the file, and stay where the next are read."""
        position, content = self._position, bytearray()
        self._position = max(0, start)
        while len(content) < length and (part := self.read(length - len(content))):
            content += part
        self._position = position
        return bytes(content)

    def tell(self) -> int:
        """Return where the next bytes are read from."""
        return self._position

    @contextmanager
    def without(self, gap: range) -> Iterator[None]:
        """Leave out a part meanwhile, as if what is before and behind it were all of the file."""
        position, before = self._position, self._gap
        self._position, self._gap = 0, gap
        try:
            yield
        finally:
            self._position, self._gap = position, before

    @contextmanager
    def spooling(self) -> Iterator[None]:
        """Forget nothing meanwhile: it may be read again."""
        before, self._is_spooling = self._is_spooling, True
        try:
            yield
        finally:
            # For the first block of the next pass, before which there is none to forget.
            self._make_room()
            self._is_spooling = before

    def finish(self) -> bytes | None:
        """Empty the spool; return the hash of all of the file, whose rest is fetched for it."""
        self._spooled.clear()
        os.ftruncate(self._spool_fd, 0)
        if self._hasher is None:
            return None
        self._hash_before(-(-self.bytes_size // self._block_bytes))
        return bytes(self._hasher.digest())

    def _block(self, index: int) -> bytes:
        if index in self._blocks:
            return self._blocks[index]
        self._make_room()
        block = self._unspool(index) if index in self._spooled else self._fetch(index)
        self._blocks[index] = block
        if index == self._hashed_blocks:
            self._hash(block)
        return block

    def _make_room(self) -> None:
        if len(self._blocks) * self._block_bytes >= _KEPT_BYTES:
            self._forget(min(self._blocks))

    def _forget(self, index: int) -> None:
        self._hash_before(index + 1)
        block = self._blocks.pop(index)
        if self._is_spooling and index not in self._spooled:
            # A full disk, or a file larger than a decoder may write: then it is fetched again.
            with suppress(OSError):
                if os.pwrite(self._spool_fd, block, index * self._block_bytes) == len(block):
                    self._spooled.add(index)

    def _unspool(self, index: int) -> bytes:
        return os.pread(self._spool_fd, self._block_bytes, index * self._block_bytes)

    def _hash_before(self, end: int) -> None:
        """Hash all blocks before one, in the order of the file."""
        while self._hasher is not None and self._hashed_blocks < end:
            index = self._hashed_blocks
            self._hash(self._blocks[index] if index in self._blocks else self._fetch(index))

    def _hash(self, block: bytes) -> None:
        if self._hasher is not None:
            self._hasher.update(block)
            self._hashed_blocks += 1

    def _fetch(self, index: int) -> bytes:
        start = index * self._block_bytes
        parts: list[bytes] = []
        # A network file system may return less than asked for.
        while part := os.pread(self._fd, self._block_bytes - sum(map(len, parts)), start):
            parts.append(part)
            start += len(part)
            self.bytes_read += len(part)
            if start >= self.bytes_size or start % self._block_bytes == 0:
                break
        return b"".join(parts)
