"""Hashes batches of small files in a process of its own: python -m data_plane.hasher DESCRIPTOR.

In threads of one process small files are hashed one at a time, whatever the number of processors:
each costs more Python than hashing. The caller sends the descriptor of a root and the files below
it, and gets an answer for each of them; with the end of the connection this process ends.
"""

import os
import signal
import socket
import sys
from itertools import groupby
from multiprocessing.connection import Connection

from data_plane.digests import Answer, hash_small
from data_plane.executor import explain
from data_plane.jail import PROC_FD, Jail

# Path, size, time of change and algorithm: no more than is needed, and no object to be made of it.
SmallFile = tuple[bytes, int, int, str]


def main() -> None:
    """Answer until the caller hangs up."""
    # Ctrl-C reaches every process of a terminal; the caller decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as line:
        messages: Connection = Connection(os.dup(line.fileno()))
        while True:
            _mark, descriptors, _flags, _address = socket.recv_fds(line, 1, 1)
            if not descriptors:
                return
            try:
                messages.send(_answers(descriptors[0], messages.recv()))
            except (EOFError, BrokenPipeError):
                return
            finally:
                os.close(descriptors[0])


def _answers(root: int, files: list[SmallFile]) -> list[Answer]:
    answers: list[Answer] = []
    with Jail(PROC_FD % root) as jail:
        for folder, there in groupby(files, key=lambda file: file[0].rpartition(b"/")[0]):
            answers += _answers_of_folder(jail, folder, list(there))
    return answers


def _answers_of_folder(jail: Jail, folder: bytes, files: list[SmallFile]) -> list[Answer]:
    try:
        folder_fd = jail.open_dir(folder)
    except OSError as error:
        return [explain(error)] * len(files)
    answers: list[Answer] = []
    try:
        for rel_path, size_bytes, mtime_ns, algorithm in files:
            try:
                opened = jail.open_file_in(folder_fd, rel_path)
                answers.append(hash_small(opened, size_bytes, mtime_ns, algorithm))
            except OSError as error:
                answers.append(explain(error))
    finally:
        os.close(folder_fd)
    return answers


if __name__ == "__main__":
    main()
