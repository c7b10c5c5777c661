"""The caller's end of the processes that hash batches of files, one for each thread that hashes.

A process stays when its thread is done, for the next one.
"""

import os
import select
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection

from data_plane.digests import ENDS, Answer
from data_plane.executor import Hashed, ToHash, Unhashed
from data_plane.jail import Jail
from data_plane.small_files import File

_CHECK_MS = 200
# With the next batch there already, a process need not wait until the last answer was read.
_SENT_BATCHES = 2

# Paths, sizes, times of change and algorithms of files.
Columns = tuple[list[bytes], list[int], list[int], Sequence[str]]

# Those that nobody uses now; the one that was used last is taken first.
_idle: deque["Hasher"] = deque()
_busy: set["Hasher"] = set()
# As `Hashed._make` does, but without a step of Python: all threads would wait for it.
_hashed = partial(tuple.__new__, Hashed)


class HasherLost(Exception):
    """The process has ended, whatever the reason; its files are still to be hashed."""


class Hasher:
    """A process that hashes batches of files."""

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
        self._answers = select.poll()
        self._answers.register(self._messages.fileno(), select.POLLIN)

    def send(self, jail: Jail, files: Sequence[ToHash], *, ends: bool = False) -> None:
        """Have files below a root hashed that is open here, or their ends."""
        try:
            socket.send_fds(self._line, [b"."], [jail.fileno()])
            self._messages.send(_columns(files, ends=ends))
        except OSError:
            raise HasherLost from None

    def receive(self, check: Callable[[], None]) -> list[Answer]:
        """Return the answers to what was sent first; `check` raises what ends the wait early."""
        try:
            while not self._answers.poll(_CHECK_MS):
                check()
            answers: list[Answer] = self._messages.recv()
        except (OSError, EOFError):
            raise HasherLost from None
        return answers

    def close(self) -> None:
        """End the process, whatever it does."""
        self._messages.close()
        self._line.close()
        self.process.kill()
        self.process.wait()


def _columns(files: Sequence[ToHash], *, ends: bool) -> Columns:
    """Return what `request` says of each file, by columns: they are made and sent sooner."""
    return (
        [file.rel_path for file in files],
        [file.size_bytes for file in files],
        [file.mtime_ns for file in files],
        [ENDS] * len(files) if ends else [file.algorithm for file in files],
    )


def request(file: ToHash, *, ends: bool) -> File:
    """Return what somebody who is to hash a file, or its ends, needs to know of it."""
    algorithm = ENDS if ends else file.algorithm
    return file.rel_path, file.size_bytes, file.mtime_ns, algorithm


def outcome(file: ToHash, answer: Answer) -> Hashed | Unhashed:
    """Return what an answer says of a file."""
    return Hashed(file, answer) if isinstance(answer, bytes) else Unhashed(file, *answer)


def _outcomes(files: Sequence[ToHash], answers: Sequence[Answer]) -> list[Hashed | Unhashed]:
    if {bytes}.issuperset(map(type, answers)):
        return list(map(_hashed, zip(files, answers, strict=True)))
    return list(map(outcome, files, answers))


def prepare(count: int) -> None:
    """Have so many processes started, in use or not, because there will be files to hash."""
    with suppress(HasherLost):
        while len(_idle) + len(_busy) < count:
            _idle.append(Hasher())


def hash_elsewhere(
    batches: Iterable[tuple[Jail, Sequence[ToHash]]],
    check: Callable[[], None],
    *,
    ends: bool = False,
) -> Generator[list[Hashed | Unhashed], None, None]:
    """Hash batches, or their ends, in a process that nobody else uses, a new one if need be.

    A process that is lost ends this with HasherLost, after the batches that it has answered.
    """
    try:
        hasher = _idle.pop()
    except IndexError:
        hasher = Hasher()
    # Nobody else may have it before everything is answered: they would get the answers to this.
    _busy.add(hasher)
    remaining = iter(batches)
    sent: deque[Sequence[ToHash]] = deque()
    try:
        while True:
            for jail, files in islice(remaining, _SENT_BATCHES - len(sent)):
                check()
                hasher.send(jail, files, ends=ends)
                sent.append(files)
            if not sent:
                break
            answers = hasher.receive(check)
            yield _outcomes(sent.popleft(), answers)
    except BaseException:
        hasher.close()
        raise
    else:
        _idle.append(hasher)
    finally:
        _busy.discard(hasher)
