"""Does shards in processes of their own: python -m data_plane.hasher DESCRIPTOR.

In threads of one process small files are hashed one at a time, whatever the number of processors:
each costs more Python than hashing. To hand over files one by one, and to take the answers back,
costs as much again. So a process gets a shard as it was claimed, reads from the database which
files that are, hashes them, and returns all that is to be written at once. The worker writes it,
because who writes to SQLite finds what the last one has left in memory.

What is started is a nursery: it loads the code once, and each process that hashes is a fork of it,
ready at once. With the end of its connection to the worker each of them ends.
"""

import gc
import importlib
import logging
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection

from data_plane.executor import Context, Control, Fail, Interrupted, Skip
from data_plane.hasher_messages import Done, Progress, Station, Unable
from data_plane.io_budget import HASHING, IoBudget
from data_plane.registry import EXECUTORS
from data_plane.roots import Roots
from mediaplane.logs import LogFormatter
from mediaplane.process import GARBAGE_THRESHOLD
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import JobKind, Plane

log = logging.getLogger(__name__)

_TOLD_SECONDS = 0.1


class _Watched(Control):
    """Work for somebody who is told how far it is; without him, it ends."""

    def __init__(self, messages: Connection) -> None:
        super().__init__()
        self._messages = messages
        self._line = select.poll()
        self._line.register(messages.fileno(), select.POLLIN)
        self._told_at = time.monotonic()

    def check(self) -> None:
        # Nothing is said while the work goes on: so that is the end of the line.
        if self._line.poll(0):
            raise Interrupted
        now = time.monotonic()
        if now - self._told_at >= _TOLD_SECONDS:
            self._told_at = now
            self._messages.send(Progress(self.items, self.bytes))


class _Desk:
    """Where shards are done, one after the other; it reads the database and writes no results."""

    def __init__(self, station: Station, messages: Connection) -> None:
        settings = station.settings
        self._messages = messages
        self._database = Database(station.database_url, Plane.DATA, settings.wal_limit_bytes)
        self._roots = Roots(settings.roots)
        self._budget = IoBudget(self._database, HASHING, settings.hash_bytes_per_second)
        self._is_limited = settings.hash_bytes_per_second > 0

    def do(self, kind: JobKind, item: Row) -> Done:
        """Do a shard."""
        control = _Watched(self._messages)
        ctx = Context(
            control,
            self._roots.open_jail,
            spend=partial(self._budget.spend, control),
            is_limited=self._is_limited,
        )
        executor = EXECUTORS[kind]
        result = executor.run(executor.prepare(self._database, item), ctx)
        return Done(control.items, control.bytes, result)


def serve(line: socket.socket) -> None:
    """Do shards until the worker hangs up."""
    own: list[int] = []
    with suppress(OSError):  # where it is not allowed
        own = [os.pidfd_open(os.getpid())]
    socket.send_fds(line, [b"."], own)
    for descriptor in own:
        os.close(descriptor)
    messages: Connection = Connection(os.dup(line.fileno()))
    desk = _Desk(messages.recv(), messages)
    while True:
        order = messages.recv()
        answer: Done | Unable
        try:
            answer = desk.do(*order)
        except (Interrupted, ConnectionError):
            raise
        except (Fail, Skip):
            answer = Unable()  # it is for the worker to say so
        except Exception:
            log.warning("A shard could not be done; the worker does it itself", exc_info=True)
            answer = Unable()
        messages.send(answer)


def main() -> None:
    """Be a nursery until the worker hangs up."""
    # They reach every process of a terminal or of a service; the worker decides what ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    logging.basicConfig(level=logging.WARNING, format="")
    logging.getLogger().handlers[0].setFormatter(LogFormatter())
    for name in sys.argv[2:]:
        importlib.import_module(name)  # the driver of a database, which is loaded when it is used
    gc.set_threshold(GARBAGE_THRESHOLD)
    gc.freeze()  # what is there by now stays, and is shared
    with socket.socket(fileno=int(sys.argv[1])) as nursery:
        while True:
            _mark, descriptors, _flags, _address = socket.recv_fds(nursery, 1, 1)
            if not descriptors:
                break
            with socket.socket(fileno=descriptors[0]) as line:
                if os.fork() == 0:
                    nursery.close()
                    _serve_and_exit(line)
    # As their end is of no interest, this waits for all of them, and fails then.
    with suppress(ChildProcessError):
        os.wait()


def _serve_and_exit(line: socket.socket) -> None:
    try:
        serve(line)
    except (Interrupted, EOFError, ConnectionError):
        pass  # the worker has hung up
    except Exception:
        log.exception("A process that hashes met an error")
    finally:
        os._exit(0)  # what is behind us belongs to the nursery


if __name__ == "__main__":
    main()
