"""Hashes many files below one root; those that have to come from the disk, several at once."""

import os
import resource
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby, islice
from operator import attrgetter

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
from data_plane.executor import ToHash
from data_plane.file_states import explain
from data_plane.jail import Jail
from data_plane.small_files import Folders, Opened, answer_small

# So many files a disk can work on at once.
_WINDOW_FILES = 32
# So much of a file it is asked for at once, in pieces that Linux takes whole.
_AHEAD_BYTES = 8 << 20
_PIECE_BYTES = 1 << 20


class _Disk(threading.local):
    """Whether the files of late had to come from the disk; at first nobody knows."""

    is_needed = True


_disk = _Disk()
_size = attrgetter("size_bytes")
_size_and_algorithm = attrgetter("size_bytes", "algorithm")


def answer_files(jail: Jail, files: Iterable[ToHash]) -> Generator[list[Answer], None, None]:
    """Hash files below a root, and yield the answers to some of them at a time."""
    remaining = iter(files)
    with closing(Folders(jail)) as folders:
        while window := list(islice(remaining, _WINDOW_FILES)):
            before = _blocks_read()
            if _disk.is_needed:
                opened = [(file, _open(folders, file)) for file in window]
                _read_ahead(opened)
                answers = _answer_opened(opened)
            elif max(map(_size, window)) <= BLOCK_BYTES:
                answers = answer_small(folders, window)
            else:
                runs = groupby(window, key=_size_and_algorithm)
                answers = [one for alike, run in runs for one in _answer_run(folders, *alike, run)]
            _disk.is_needed = _blocks_read() > before
            yield answers


def _open(folders: Folders, file: ToHash) -> Opened | OSError:
    try:
        return folders.open_file(file.rel_path)
    except OSError as error:
        return error


def _read_ahead(opened: Iterable[tuple[ToHash, Opened | OSError]]) -> None:
    """Have the disk read all of them at once; those in memory are faster by one."""
    for file, one in opened:
        if isinstance(one, OSError):
            continue
        size_bytes = file.size_bytes
        # Not every file system reads ahead.
        with suppress(OSError):
            if file.algorithm == ENDS:
                _announce(one[0], 0, HEAD_BYTES)
                _announce(one[0], tail_offset(size_bytes), TAIL_BYTES)
            else:
                for offset in range(0, min(size_bytes, _AHEAD_BYTES), _PIECE_BYTES):
                    _announce(one[0], offset, min(size_bytes - offset, _PIECE_BYTES))


def _announce(descriptor: int, offset: int, length: int) -> None:
    os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_WILLNEED)


def _answer_run(
    folders: Folders, size_bytes: int, algorithm: str, run: Iterable[ToHash]
) -> Iterable[Answer]:
    """Answer files of one size that follow each other: large ones may well be copies."""
    if size_bytes <= BLOCK_BYTES:
        return answer_small(folders, run)
    if algorithm == ENDS:
        return [_answer(file, _open(folders, file)) for file in run]
    return _answer_together(size_bytes, algorithm, [(file, _open(folders, file)) for file in run])


def _answer_opened(opened: list[tuple[ToHash, Opened | OSError]]) -> list[Answer]:
    """Answer files whose contents are on their way from the disk, copies side by side too.

    Of a large file only the beginning is: in step, the head of the disk would go back and forth.
    """
    answers: list[Answer] = []
    for (size_bytes, algorithm), run in groupby(
        opened, key=lambda one: _size_and_algorithm(one[0])
    ):
        if algorithm != ENDS and BLOCK_BYTES < size_bytes <= _AHEAD_BYTES:
            answers += _answer_together(size_bytes, algorithm, list(run))
        else:
            answers += [_answer(file, one) for file, one in run]
    return answers


def _answer_together(
    size_bytes: int, algorithm: str, run: list[tuple[ToHash, Opened | OSError]]
) -> Iterator[Answer]:
    answers = iter(
        hash_together(
            [(*one, file.mtime_ns) for file, one in run if not isinstance(one, OSError)],
            size_bytes,
            algorithm,
        )
    )
    for _file, one in run:
        yield explain(one) if isinstance(one, OSError) else next(answers)


def _answer(file: ToHash, opened: Opened | OSError) -> Answer:
    if isinstance(opened, OSError):
        return explain(opened)
    try:
        return hash_at_once(*opened, file.size_bytes, file.mtime_ns, file.algorithm)
    except OSError as error:
        return explain(error)


def _blocks_read() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
