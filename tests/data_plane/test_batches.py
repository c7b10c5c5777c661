"""Many files of one root are hashed in windows, those that come from the disk several at once."""

import errno
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count, cycle, groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from data_plane import batches, digests
from data_plane.batches import answer_files
from data_plane.digests import (
    BLOCK_BYTES,
    CHANGED,
    ENDS,
    HEAD_BYTES,
    TAIL_BYTES,
    Answer,
    hash_at_once,
)
from data_plane.executor import ToHash
from data_plane.jail import Jail
from tests.support.scanning import put

FILES = 100
SIZE_BYTES = 100_000


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Jail]:
    """A hundred files, each of its own content, in three folders; none has been read yet."""
    for number in range(FILES):
        put(tmp_path, path_of(number), content_of(number))
        os.utime(tmp_path / os.fsdecode(path_of(number)), ns=(1, 1))
    with opened(tmp_path) as jail:
        yield jail


@contextmanager
def opened(folder: Path) -> Iterator[Jail]:
    with Jail(bytes(folder)) as jail:
        yield jail


def path_of(number: int) -> bytes:
    return b"folder %d/%d" % (number % 3, number)


def content_of(number: int) -> bytes:
    return number.to_bytes(4, "big") * (SIZE_BYTES // 4)


def asked(algorithm: str) -> list[ToHash]:
    return [file(path_of(number), SIZE_BYTES, 1, algorithm) for number in range(FILES)]


def file(rel_path: bytes, size_bytes: int, mtime_ns: int, algorithm: str) -> ToHash:
    return ToHash(0, b"", rel_path, size_bytes, mtime_ns, algorithm)


def answers(root: Jail, files: list[ToHash]) -> list[Answer]:
    return list(chain.from_iterable(answer_files(root, files)))


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Where the disk is told to read ahead, as if every window of files came from it."""
    monkeypatch.setattr(batches._disk, "is_needed", True)
    monkeypatch.setattr(batches, "_blocks_read", count().__next__)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda _fd, offset, length, _advice: told.append((offset, length))
    )
    return told


def test_files_that_are_not_in_memory_are_read_ahead(
    root: Jail, announced: list[tuple[int, int]]
) -> None:
    expected = [blake3(content_of(number)).digest() for number in range(FILES)]
    assert answers(root, asked("blake3")) == expected
    assert announced == [(0, SIZE_BYTES)] * FILES


def test_nothing_is_announced_once_files_were_found_in_memory(
    root: Jail, announced: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_blocks_read", lambda: 0)
    for _batch in range(2):
        answers(root, asked("blake3"))
    assert len(announced) == batches._WINDOW_FILES, "of the first window nobody knew"


def test_of_files_whose_ends_are_wanted_no_more_than_these_is_read_ahead(
    root: Jail, announced: list[tuple[int, int]]
) -> None:
    contents = map(content_of, range(FILES))
    expected = [blake3(all_[:HEAD_BYTES] + all_[-TAIL_BYTES:]).digest() for all_ in contents]
    assert answers(root, asked(ENDS)) == expected
    assert set(announced) == {(0, HEAD_BYTES), (SIZE_BYTES - TAIL_BYTES, TAIL_BYTES)}


def test_no_descriptor_stays_open_behind_files(root: Jail) -> None:
    before = os.listdir("/proc/self/fd")
    files = [
        *asked("blake3"),
        file(b"gone/file", 7, 0, "blake3"),
        file(b"folder 0/gone", 7, 0, ENDS),
    ]
    assert [code for code, _message in answers(root, files)[FILES:]] == ["not_found"] * 2
    some = answer_files(root, files)
    next(some)
    some.close()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("algorithm", ["blake3", ENDS])
def test_a_file_that_took_the_place_of_the_one_found_gets_no_hash(
    tmp_path: Path, algorithm: str
) -> None:
    for name in ("found", "opened"):
        (tmp_path / name).write_bytes(name[:5].encode())
        os.utime(tmp_path / name, ns=(1, 1))
    found = os.stat(tmp_path / "found")
    opened = [os.open(tmp_path / name, os.O_RDONLY) for name in ("found", "opened")]
    hashes = [hash_at_once(descriptor, found, 5, 1, algorithm) for descriptor in opened]
    assert hashes == [blake3(b"found").digest(), CHANGED]


# What files of one size may begin with: each part is as long as what is compared at once.
PARTS = [bytes([number]) * BLOCK_BYTES for number in range(3)]
HASHERS: dict[str, Any] = {"blake3": blake3, "sha256": hashlib.sha256}


def alike(folder: Path, contents: list[bytes], algorithm: str = "blake3") -> list[ToHash]:
    """Make files that follow each other, and return what is asked of them."""
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content)
        os.utime(folder / str(number), ns=(1, 1))
    return [file(b"%d" % number, len(one), 1, algorithm) for number, one in enumerate(contents)]


@given(
    contents=st.integers(1, 4).flatmap(
        lambda length: st.lists(
            st.lists(st.sampled_from(PARTS), min_size=length, max_size=length).map(b"".join),
            min_size=2,
            max_size=8,
        )
    ),
    end=st.binary(max_size=3),
    algorithm=st.sampled_from(sorted(HASHERS)),
)
def test_files_of_one_size_are_told_apart_wherever_they_differ(
    contents: list[bytes], end: bytes, algorithm: str
) -> None:
    with TemporaryDirectory() as place, opened(Path(place)) as folder:
        whole = [content + end for content in contents]
        files = alike(Path(place), whole, algorithm)
        before = os.listdir("/proc/self/fd")
        batches._disk.is_needed = False
        assert answers(folder, files) == [HASHERS[algorithm](one).digest() for one in whole]
        assert os.listdir("/proc/self/fd") == before


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches._disk, "is_needed", False)
    monkeypatch.setattr(batches, "_blocks_read", lambda: 0)


@pytest.fixture
def hashed_bytes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bytes went through a hash function."""
    counted: Counter[str] = Counter()

    class Counting:
        def __init__(self, hasher: Any = None) -> None:
            self._hasher = hasher or blake3()

        def update(self, content: bytes) -> None:
            counted["bytes"] += len(content)
            self._hasher.update(content)

        def copy(self) -> "Counting":
            return Counting(self._hasher.copy())

        def digest(self) -> bytes:
            return bytes(self._hasher.digest())

    monkeypatch.setitem(digests.HASHERS, "blake3", Counting)
    return counted


@pytest.mark.usefixtures("in_memory")
def test_what_copies_have_in_common_is_hashed_once(
    tmp_path: Path, hashed_bytes: Counter[str]
) -> None:
    copy, other = b"".join(PARTS), PARTS[0] + PARTS[0] + PARTS[2]
    files = alike(tmp_path, [copy, copy, other, copy, other])
    with opened(tmp_path) as folder:
        found = answers(folder, files)
    assert found == [blake3(one).digest() for one in (copy, copy, other, copy, other)]
    assert hashed_bytes["bytes"] == 5 * BLOCK_BYTES


@pytest.mark.usefixtures("in_memory")
def test_files_of_all_sizes_are_answered_in_their_order(tmp_path: Path) -> None:
    contents = [b"small", PARTS[0] + b"1", PARTS[0] + b"1", PARTS[1], b"", PARTS[0] + b"2", b"last"]
    files = alike(tmp_path, contents)
    files.insert(3, file(b"gone", 5, 1, "blake3"))
    files.append(file(b"1", len(contents[1]), 1, ENDS))
    with opened(tmp_path) as folder:
        found = answers(folder, files)
    assert found.pop(3)[0] == "not_found"
    ends = contents[1][:HEAD_BYTES] + contents[1][-TAIL_BYTES:]
    assert found == [blake3(one).digest() for one in (*contents, ends)]


def test_copies_that_are_all_on_their_way_from_the_disk_are_hashed_once(
    tmp_path: Path, hashed_bytes: Counter[str], announced: list[tuple[int, int]]
) -> None:
    content = b"".join(PARTS) * 3
    files = alike(tmp_path, [content] * 3)
    with opened(tmp_path) as folder:
        assert answers(folder, files) == [blake3(content).digest()] * 3
    assert announced == [(0, 1 << 20), (1 << 20, len(content) - (1 << 20))] * 3
    assert hashed_bytes["bytes"] == len(content)


@pytest.mark.usefixtures("announced")
def test_large_copies_that_come_from_the_disk_are_read_one_after_the_other(
    tmp_path: Path, hashed_bytes: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"".join(PARTS)
    monkeypatch.setattr(batches, "_AHEAD_BYTES", len(content) - 1)
    files = alike(tmp_path, [content] * 3)
    read_into, inodes = os.readv, []

    def readv(descriptor: int, buffers: list[bytearray]) -> int:
        inodes.append(os.fstat(descriptor).st_ino)
        return read_into(descriptor, buffers)

    monkeypatch.setattr(os, "readv", readv)
    with opened(tmp_path) as folder:
        assert answers(folder, files) == [blake3(content).digest()] * 3
    assert len(list(groupby(inodes))) == 3
    assert hashed_bytes["bytes"] == 3 * len(content)


@pytest.mark.usefixtures("in_memory")
def test_a_copy_that_cannot_be_hashed_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is gone, one was written to since the scan, one while it is read, one cannot be read."""
    content = b"".join(PARTS)
    files = alike(tmp_path, [content] * 6)
    (tmp_path / "1").unlink()
    os.utime(tmp_path / "2", ns=(2, 2))
    read_into = os.readv
    broken, changing = (os.stat(tmp_path / name).st_ino for name in "34")
    reads: Counter[int] = Counter()

    def readv(descriptor: int, buffers: list[bytearray]) -> int:
        inode = os.fstat(descriptor).st_ino
        reads[inode] += 1
        if inode == broken and reads[inode] == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if inode == changing and reads[inode] == 2:
            (tmp_path / "4").write_bytes(content)
        return read_into(descriptor, buffers)

    monkeypatch.setattr(os, "readv", readv)
    with opened(tmp_path) as folder:
        found = answers(folder, files)
    assert [one if isinstance(one, bytes) else one[0] for one in found] == [
        blake3(content).digest(),
        "not_found",
        "changed",
        "io_error",
        "changed",
        blake3(content).digest(),
    ]
    assert reads[broken] == reads[changing] - 1 == 2, "both faults have happened"


@pytest.mark.usefixtures("in_memory")
def test_a_block_that_comes_in_pieces_is_compared_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = PARTS[0] + PARTS[1]
    files = alike(tmp_path, [content, content])
    read_into = os.readv
    lengths = cycle((1000, BLOCK_BYTES))

    def readv(descriptor: int, buffers: list[bytearray]) -> int:
        return read_into(descriptor, [memoryview(buffers[0])[: next(lengths)]])

    monkeypatch.setattr(os, "readv", readv)
    with opened(tmp_path) as folder:
        assert answers(folder, files) == [blake3(content).digest()] * 2
