"""Many files of one root are hashed in windows, those that come from the disk several at once."""

import os
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

import pytest
from blake3 import blake3

from data_plane import batches
from data_plane.batches import File, answer_files
from data_plane.digests import CHANGED, ENDS, HEAD_BYTES, TAIL_BYTES, Answer, hash_at_once
from tests.support.scanning import put

FILES = 100
SIZE_BYTES = 100_000


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    """A hundred files, each of its own content, in three folders; none has been read yet."""
    for number in range(FILES):
        put(tmp_path, path_of(number), content_of(number))
        os.utime(tmp_path / os.fsdecode(path_of(number)), ns=(1, 1))
    descriptor = os.open(tmp_path, os.O_PATH)
    yield descriptor
    os.close(descriptor)


def path_of(number: int) -> bytes:
    return b"folder %d/%d" % (number % 3, number)


def content_of(number: int) -> bytes:
    return number.to_bytes(4, "big") * (SIZE_BYTES // 4)


def asked(algorithm: str) -> list[File]:
    return [(path_of(number), SIZE_BYTES, 1, algorithm) for number in range(FILES)]


def answers(root: int, files: list[File]) -> list[Answer]:
    return list(chain.from_iterable(answer_files(root, files)))


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Where the disk is told to read ahead, as if every window of files came from it."""
    monkeypatch.setattr(batches, "_blocks_read", count().__next__)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda _fd, offset, length, _advice: told.append((offset, length))
    )
    return told


def test_files_that_are_not_in_memory_are_read_ahead(
    root: int, announced: list[tuple[int, int]]
) -> None:
    expected = [blake3(content_of(number)).digest() for number in range(FILES)]
    assert answers(root, asked("blake3")) == expected
    # All but the first window, which showed that the disk is needed.
    assert 0 < len(announced) < FILES
    assert set(announced) == {(0, SIZE_BYTES)}


def test_of_files_whose_ends_are_wanted_no_more_than_these_is_read_ahead(
    root: int, announced: list[tuple[int, int]]
) -> None:
    contents = map(content_of, range(FILES))
    expected = [blake3(all_[:HEAD_BYTES] + all_[-TAIL_BYTES:]).digest() for all_ in contents]
    assert answers(root, asked(ENDS)) == expected
    assert set(announced) == {(0, HEAD_BYTES), (SIZE_BYTES - TAIL_BYTES, TAIL_BYTES)}


def test_no_descriptor_stays_open_behind_files(root: int) -> None:
    before = os.listdir("/proc/self/fd")
    files = [*asked("blake3"), (b"gone/file", 7, 0, "blake3"), (b"folder 0/gone", 7, 0, ENDS)]
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
