"""The worker's end of the processes that do shards (see hasher.py)."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from data_plane.executors.hash import MANY_BYTES, MANY_FILES
from data_plane.hasher_messages import Done, Station, Unable
from data_plane.leases import Held
from mediaplane.protocol.kinds import PREFIX_ITEM
from mediaplane.protocol.machines import JOB_ITEMS
from mediaplane.protocol.values import JobKind

_KINDS = frozenset({JobKind.HASH, JobKind.VERIFY})
_CHECK_MS = 200
# Files to hash mostly come together: so long after the last ones the memory is better used.
_IDLE_SECONDS = 60.0
# What processes that are to end may take for it, and a message that has begun until its end.
_END_SECONDS = 1.0
_MESSAGE_SECONDS = 10


class NotDone(Exception):
    """A process has not done a shard; whoever does it without one finds out why."""


class HasherLost(NotDone):
    """The process has ended, or none can be started."""


def is_worth_it(held: Held) -> bool:
    """Tell whether a piece of work is for another process: a shard that is large enough."""
    if held.machine is not JOB_ITEMS or held.kind not in _KINDS:
        return False
    row = held.row
    # Files of which only the beginnings are to be read are not counted, but many.
    is_prefix = row["item_key"].startswith(PREFIX_ITEM)
    files, size_bytes = row["total_items"] or 0, row["total_bytes"] or 0
    return bool(is_prefix or files >= MANY_FILES or size_bytes >= MANY_BYTES)


class _Nursery:
    """The process of which the others are forks."""

    def __init__(self, station: Station) -> None:
        self._line, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", "data_plane.hasher", str(theirs.fileno())]
            if station.database_url.get_backend_name() == "postgresql":
                command.append("psycopg")
            try:
                self._process = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            except OSError:
                self._line.close()
                raise

    @property
    def is_alive(self) -> bool:
        """Tell whether it has not ended by itself."""
        return self._process.poll() is None

    def fork(self, line: socket.socket) -> None:
        """Have a process work for whoever holds the other end of a line."""
        socket.send_fds(self._line, [b"."], [line.fileno()])

    def close(self) -> None:
        """End it, after its forks: those that outlived it would be nobody's to wait for."""
        self._line.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Hasher:
    """A process that does one shard at a time."""

    def __init__(self, nursery: _Nursery, station: Station) -> None:
        self._line, theirs = socket.socketpair()
        self._messages: Connection = Connection(os.dup(self._line.fileno()))
        patience = struct.pack("ll", _MESSAGE_SECONDS, 0)
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        self._readable = select.poll()
        self._readable.register(self._line.fileno(), select.POLLIN)
        self._has_begun = False
        # Known once it has begun, if the system has such; as a number could come to mean another
        # process, a descriptor.
        self._process: int | None = None
        with theirs:
            try:
                nursery.fork(theirs)
                self._messages.send(station)
            except OSError:
                self.close()
                raise

    @property
    def is_gone(self) -> bool:
        """Tell of one that is idle whether it has ended: it would not say anything otherwise."""
        return self._has_begun and bool(self._readable.poll(0))

    def run(self, held: Held) -> Any:
        """Have a shard done, and return what came of it; raises what ends it early."""
        control = held.control
        try:
            self._messages.send((held.kind, dict(held.row)))
        except OSError:
            raise HasherLost from None
        while not isinstance(found := self._receive(control.check), Unable):
            control.items, control.bytes = found.items, found.bytes
            if isinstance(found, Done):
                return found.result
            control.check()
        raise NotDone

    def close(self) -> None:
        """End the process, whatever it does; where it cannot be killed, it soon finds out."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            os.close(self._process)
        self._messages.close()
        self._line.close()

    def _receive(self, check: Callable[[], None]) -> Any:
        """Return what it says next; `check` raises what ends the wait early."""
        try:
            if not self._has_begun:
                self._await(check)
                mark, descriptors, _flags, _address = socket.recv_fds(self._line, 1, 1)
                if not mark:
                    raise HasherLost
                self._has_begun = True
                self._process = descriptors[0] if descriptors else None
            self._await(check)
            return self._messages.recv()
        except (OSError, EOFError):
            raise HasherLost from None

    def _await(self, check: Callable[[], None]) -> None:
        while not self._readable.poll(_CHECK_MS):
            check()


class Hashers:
    """The processes of one worker, each started when it is needed and kept for the next shard."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._nursery: _Nursery | None = None
        # The one that was used last is taken first.
        self._idle: deque[Hasher] = deque()
        self._busy = 0
        self._used_at = time.monotonic()
        self._is_closed = False
        self._turn = threading.Lock()

    def start(self) -> None:
        """Have the code loaded before there is anything to hash: that takes the longest."""
        with suppress(HasherLost), self._turn:
            self._live_nursery()

    def prepare(self, count: int) -> None:
        """Have so many processes ready, in use or not, because there will be files to hash."""
        with suppress(HasherLost), self._turn:
            self._used_at = time.monotonic()
            while len(self._idle) + self._busy < count:
                self._idle.append(self._started())

    def run(self, held: Held) -> Any:
        """Have a shard done by a process that nobody else uses."""
        with self._turn:
            hasher = self._taken()
            self._busy += 1
        is_idle = False
        try:
            result = hasher.run(held)
            is_idle = True
        except NotDone as error:
            is_idle = not isinstance(error, HasherLost)
            raise
        finally:
            with self._turn:
                self._busy -= 1
                self._used_at = time.monotonic()
                if is_idle and not self._is_closed:
                    self._idle.append(hasher)
                else:
                    hasher.close()
        return result

    def tidy(self) -> None:
        """End those that are idle when there was nothing to hash for a while."""
        with self._turn:
            if time.monotonic() - self._used_at > _IDLE_SECONDS:
                self._end_idle()

    def close(self) -> None:
        """End those that are idle, and have the others end with their work."""
        with self._turn:
            self._is_closed = True
            self._end_idle()
            if self._nursery is not None:
                self._nursery.close()
                self._nursery = None

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> Hasher:
        while self._idle:
            hasher = self._idle.pop()
            if not hasher.is_gone:
                return hasher
            hasher.close()
        return self._started()

    def _started(self) -> Hasher:
        nursery = self._live_nursery()
        try:
            return Hasher(nursery, self._station)
        except OSError:
            raise HasherLost from None

    def _live_nursery(self) -> _Nursery:
        if self._is_closed:
            raise HasherLost
        if self._nursery is not None and not self._nursery.is_alive:
            self._nursery.close()
            self._nursery = None
        if self._nursery is None:
            try:
                self._nursery = _Nursery(self._station)
            except OSError:
                raise HasherLost from None
        return self._nursery
