"""The caller's end of the processes that hash small files, one for each thread that hashes."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from data_plane.digests import Answer
from data_plane.executor import Hashed, ToHash, Unhashed
from data_plane.jail import Jail

_CHECK_SECONDS = 0.2

_mine = threading.local()


class HasherLost(Exception):
    """The process has ended, whatever the reason; its files are still to be hashed."""


class Hasher:
    """A process that hashes batches of small files."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", "data_plane.hasher", str(theirs.fileno())]
            try:
                self.process = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            except OSError:
                ours.close()
                raise HasherLost from None
        self._line = ours
        self._messages: Connection = Connection(os.dup(ours.fileno()))

    def hash(
        self, jail: Jail, files: Sequence[ToHash], check: Callable[[], None]
    ) -> list[Hashed | Unhashed]:
        """Hash files below a root that is open here; `check` raises what ends the wait early."""
        try:
            socket.send_fds(self._line, [b"."], [jail.fileno()])
            self._messages.send(
                [
                    (file.rel_path, file.size_bytes, file.mtime_ns, file.algorithm.value)
                    for file in files
                ]
            )
            while not self._messages.poll(_CHECK_SECONDS):
                check()
            answers: list[Answer] = self._messages.recv()
        except (OSError, EOFError):
            raise HasherLost from None
        return [
            Hashed(file, answer) if isinstance(answer, bytes) else Unhashed(file, *answer)
            for file, answer in zip(files, answers, strict=True)
        ]

    def close(self) -> None:
        """End the process, whatever it does."""
        self._messages.close()
        self._line.close()
        self.process.kill()
        self.process.wait()


def hash_elsewhere(
    jail: Jail, files: Sequence[ToHash], check: Callable[[], None]
) -> list[Hashed | Unhashed]:
    """Hash files in the process that works for this thread, a new one if need be."""
    hasher: Hasher | None = getattr(_mine, "hasher", None)
    try:
        if hasher is None:
            hasher = _mine.hasher = Hasher()
        return hasher.hash(jail, files, check)
    except BaseException:
        # It is lost, or would answer what nobody asks any more.
        if hasher is not None:
            del _mine.hasher
            hasher.close()
        raise
