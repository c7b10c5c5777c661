"""Hashes batches of files in a process of its own: python -m data_plane.hasher DESCRIPTOR.

In threads of one process small files are hashed one at a time, whatever the number of processors:
each costs about as much Python as hashing. Of larger ones, threads lose a quarter of their time to
waiting for each other. The caller sends the descriptor of a root and the files below
it, and gets an answer for each of them; with the end of the connection this process ends.
"""

import gc
import os
import signal
import socket
import sys
from itertools import chain
from multiprocessing.connection import Connection

from data_plane.batches import answer_files


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
                columns = messages.recv()
                answers = answer_files(descriptors[0], zip(*columns, strict=True))
                messages.send(list(chain.from_iterable(answers)))
            except (EOFError, BrokenPipeError):
                return
            finally:
                os.close(descriptors[0])


if __name__ == "__main__":
    main()
