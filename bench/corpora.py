"""Trees of files to find duplicates in, the same on every machine."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
FILES_PER_FOLDER = 100
_POOL_BYTES = 64 * MIB


class Corpus(NamedTuple):
    """A tree and what it holds."""

    name: str
    folder: Path
    files: int
    size_bytes: int

    @property
    def title(self) -> str:
        return f"{self.name}: {self.files:,} files, {self.size_bytes / 1e9:.1f} GB"


class Contents:
    """Contents that look random and differ, cut out of one pool: making them costs little."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._pool = self._random.randbytes(_POOL_BYTES)
        self._number = 0

    def size(self, low: int, high: int) -> int:
        """Return a size between two; small ones are as frequent as large ones are heavy."""
        return int(low * (high / low) ** self._random.random())

    def new(self, size_bytes: int) -> bytes:
        """Return a content that was not there before."""
        self._number += 1
        head = self._number.to_bytes(8, "big")
        start = self._random.randrange(_POOL_BYTES - size_bytes)
        return (head + self._pool[start : start + size_bytes])[:size_bytes]

    def is_copy(self, share: float) -> bool:
        """Tell whether the next file is to be a copy of one that is there."""
        return self._random.random() < share

    def one_of(self, count: int) -> int:
        """Return one of so many numbers."""
        return self._random.randrange(count)


def small(folder: Path, files: int) -> Corpus:
    """Many small files, a fifth of them copies."""
    return _write("small", folder, _mixed(files, KIB, 64 * KIB, 0.2, seed=1))


def media(folder: Path, files: int) -> Corpus:
    """Files as large as pictures and short videos, two fifths of them copies."""
    return _write("media", folder, _mixed(files, MIB, 8 * MIB, 0.4, seed=2))


def same_size(folder: Path, files: int) -> Corpus:
    """Different files of one size: sizes alone tell nothing."""
    contents = Contents(seed=3)
    return _write("same size", folder, (contents.new(32 * KIB) for _ in range(files)))


def last_byte(folder: Path, files: int) -> Corpus:
    """Files that differ from each other in their last bytes alone."""
    body = Contents(seed=4).new(MIB // 2)
    return _write("last byte", folder, (body[:-4] + i.to_bytes(4, "big") for i in range(files)))


def warm(corpus: Corpus) -> None:
    """Have the system keep all contents in memory."""
    buffer = bytearray(MIB)
    # What was read once is the first to go when memory gets short; what was read twice is not.
    for _ in range(2):
        for path in corpus.folder.rglob("*.bin"):
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def _mixed(files: int, low: int, high: int, copies: float, seed: int) -> Iterator[bytes]:
    contents = Contents(seed)
    recent: list[bytes] = []  # few, so that media fit into memory
    for _ in range(files):
        if recent and contents.is_copy(copies):
            yield recent[contents.one_of(len(recent))]
            continue
        new = contents.new(contents.size(low, high))
        recent = [*recent[-15:], new]
        yield new


def _write(name: str, folder: Path, contents: Iterator[bytes]) -> Corpus:
    count = size_bytes = 0
    place = folder
    for content in contents:
        if count % FILES_PER_FOLDER == 0:
            place = folder / f"{count // FILES_PER_FOLDER:05}"
            place.mkdir(parents=True)
        (place / f"{count:07}.bin").write_bytes(content)
        count, size_bytes = count + 1, size_bytes + len(content)
    os.sync()
    return Corpus(name, folder, count, size_bytes)
