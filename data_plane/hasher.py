"""Hashes batches of small files in a process of its own: python -m data_plane.hasher DESCRIPTOR.

In threads of one process small files are hashed one at a time, whatever the number of processors:
each costs more Python than hashing. The caller sends the descriptor of a root and the files below
it, and gets an answer for each of them; with the end of the connection this process ends.
"""

import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby, islice
from multiprocessing.connection import Connection

from data_plane.digests import Answer, hash_small
from data_plane.executor import explain
from data_plane.jail import PROC_FD, Jail

# Path, size, time of change and algorithm: no more than is needed, and no object to be made of it.
SmallFile = tuple[bytes, int, int, str]
# A descriptor, and what was found before it was opened.
Opened = tuple[int, os.stat_result]

# So many files a disk can work on at once.
_WINDOW_FILES = 32


def main() -> None:
    """Answer until the caller hangs up."""
    # Ctrl-C reaches every process of a terminal; the caller decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # nothing here refers to itself
    with socket.socket(fileno=int(sys.argv[1])) as line:
        messages: Connection = Connection(os.dup(line.fileno()))
        while True:
            _mark, descriptors, _flags, _address = socket.recv_fds(line, 1, 1)
            if not descriptors:
                return
            try:
                messages.send(answer_files(descriptors[0], messages.recv()))
            except (EOFError, BrokenPipeError):
                return
            finally:
                os.close(descriptors[0])


def answer_files(root: int, files: Iterable[SmallFile]) -> list[Answer]:
    """Hash files below a root; as soon as one had to be read from the disk, many at once."""
    answers: list[Answer] = []
    remaining, is_cold = iter(files), False
    with Jail(PROC_FD % root) as jail:
        while window := list(islice(remaining, _WINDOW_FILES)):
            before = _blocks_read()
            opened: Iterable[Opened | OSError] = _open(jail, window)
            if is_cold:
                opened = _read_ahead(opened)
            answers += map(_answer, window, opened)
            is_cold = _blocks_read() > before
    return answers


def _open(jail: Jail, files: Iterable[SmallFile]) -> Iterator[Opened | OSError]:
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


def _read_ahead(files: Iterable[Opened | OSError]) -> list[Opened | OSError]:
    """Open all of them and have the disk read them at once; in memory they are faster by one."""
    opened = list(files)
    for one in opened:
        if not isinstance(one, OSError):
            # Not every file system reads ahead.
            with suppress(OSError):
                os.posix_fadvise(one[0], 0, 0, os.POSIX_FADV_WILLNEED)
    return opened


def _answer(file: SmallFile, opened: Opened | OSError) -> Answer:
    if isinstance(opened, OSError):
        return explain(opened)
    _rel_path, size_bytes, mtime_ns, algorithm = file
    try:
        return hash_small(*opened, size_bytes, mtime_ns, algorithm)
    except OSError as error:
        return explain(error)


def _blocks_read() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock


if __name__ == "__main__":
    main()
