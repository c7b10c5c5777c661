"""Hashes many files below one root; those that have to come from the disk, several at once."""

import os
import resource
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from itertools import groupby, islice

from data_plane.digests import (
    BLOCK_BYTES,
    ENDS,
    HEAD_BYTES,
    TAIL_BYTES,
    Answer,
    hash_at_once,
    hash_together,
    tail_offset,
)
from data_plane.file_states import explain
from data_plane.jail import PROC_FD, Jail

# Path, size, time of change and algorithm: no more than is needed, and no object to be made of it.
File = tuple[bytes, int, int, str]
# A descriptor, and what was found before it was opened.
Opened = tuple[int, os.stat_result]

# So many files a disk can work on at once.
_WINDOW_FILES = 32


class _Disk(threading.local):
    """Whether the files of late had to come from the disk; at first nobody knows."""

    is_needed = True


_disk = _Disk()


def answer_files(root: int, files: Iterable[File]) -> Generator[list[Answer], None, None]:
    """Hash files below a root, and yield the answers to some of them at a time."""
    remaining = iter(files)
    with Jail(PROC_FD % root) as jail:
        while window := list(islice(remaining, _WINDOW_FILES)):
            before = _blocks_read()
            opened = _open(jail, window)
            if _disk.is_needed:
                # One after the other: in step, the head of a disk would go back and forth.
                answers = list(map(_answer, window, _read_ahead(window, opened)))
            else:
                runs = groupby(zip(window, opened, strict=True), key=_size_and_algorithm)
                answers = [answer for alike, run in runs for answer in _answer_run(*alike, run)]
            _disk.is_needed = _blocks_read() > before
            yield answers


def _open(jail: Jail, files: Iterable[File]) -> Iterator[Opened | OSError]:
    for folder, there in groupby(files, key=lambda file: file[0].rpartition(b"/")[0]):
        try:
            folder_fd = jail.open_dir(folder)
        except OSError as error:
            yield from [error for _file in there]
            continue
        try:
            for file in there:
                try:
                    yield jail.open_file_in(folder_fd, file[0])
                except OSError as error:
                    yield error
        finally:
            os.close(folder_fd)


def _read_ahead(
    files: Iterable[File], opened: Iterable[Opened | OSError]
) -> list[Opened | OSError]:
    """Open all of them and have the disk read them at once; in memory they are faster by one."""
    all_opened = list(opened)
    for (_path, size_bytes, _mtime, algorithm), one in zip(files, all_opened, strict=True):
        if isinstance(one, OSError):
            continue
        # Not every file system reads ahead.
        with suppress(OSError):
            if algorithm == ENDS:
                _announce(one[0], 0, HEAD_BYTES)
                _announce(one[0], tail_offset(size_bytes), TAIL_BYTES)
            else:
                _announce(one[0], 0, size_bytes)
    return all_opened


def _announce(descriptor: int, offset: int, length: int) -> None:
    os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_WILLNEED)


def _size_and_algorithm(one: tuple[File, object]) -> tuple[int, str]:
    (_path, size_bytes, _mtime_ns, algorithm), _opened = one
    return size_bytes, algorithm


def _answer_run(
    size_bytes: int, algorithm: str, run: Iterable[tuple[File, Opened | OSError]]
) -> Iterable[Answer]:
    """Answer files of one size that follow each other: large ones may well be copies."""
    if size_bytes <= BLOCK_BYTES or algorithm == ENDS:
        return (_answer(*one) for one in run)
    return _answer_together(size_bytes, algorithm, list(run))


def _answer_together(
    size_bytes: int, algorithm: str, run: list[tuple[File, Opened | OSError]]
) -> Iterator[Answer]:
    answers = iter(
        hash_together(
            [(*one, file[2]) for file, one in run if not isinstance(one, OSError)],
            size_bytes,
            algorithm,
        )
    )
    for _file, one in run:
        yield explain(one) if isinstance(one, OSError) else next(answers)


def _answer(file: File, opened: Opened | OSError) -> Answer:
    if isinstance(opened, OSError):
        return explain(opened)
    _rel_path, size_bytes, mtime_ns, algorithm = file
    try:
        return hash_at_once(*opened, size_bytes, mtime_ns, algorithm)
    except OSError as error:
        return explain(error)


def _blocks_read() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
