"""Hashes batches of small files in a process of its own: python -m data_plane.hasher DESCRIPTOR.

In threads of one process small files are hashed one at a time, whatever the number of processors:
each costs more Python than hashing. The caller sends the descriptor of a root and the files below
it, and gets an answer for each of them; with the end of the connection this process ends.
"""

import os
import signal
import socket
import sys
from functools import partial
from itertools import groupby
from multiprocessing.connection import Connection

from data_plane.digests import hash_file
from data_plane.executor import Hashed, ToHash, explain
from data_plane.jail import PROC_FD, Jail

# For each file its digest, or the code and the message of why it has none.
Answer = bytes | tuple[str, str]


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


def _answers(root: int, files: list[ToHash]) -> list[Answer]:
    answers: list[Answer] = []
    with Jail(PROC_FD % root) as jail:
        for folder, there in groupby(files, key=lambda file: file.rel_path.rpartition(b"/")[0]):
            answers += _answers_of_folder(jail, folder, list(there))
    return answers


def _answers_of_folder(jail: Jail, folder: bytes, files: list[ToHash]) -> list[Answer]:
    try:
        folder_fd = jail.open_dir(folder)
    except OSError as error:
        return [explain(error)] * len(files)
    try:
        open_file = partial(jail.open_file_in, folder_fd)
        found = [hash_file(file, open_file, _ignore) for file in files]
    finally:
        os.close(folder_fd)
    return [one.digest if isinstance(one, Hashed) else (one.code, one.message) for one in found]


def _ignore(_length: int) -> None:
    """A batch is small: its progress is told when it is done."""


if __name__ == "__main__":
    main()
