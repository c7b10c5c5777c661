"""One decoder process as the data plane sees it: started, asked, watched, killed and replaced."""

import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from data_plane.decoders.channel import Inbox, send
from data_plane.decoders.messages import (
    Done,
    Failed,
    Failure,
    Malformed,
    Order,
    decode_reply,
    encode_order,
)
from data_plane.executor import Interrupted, Retry

WATCH_SECONDS = 0.1

_START_SECONDS = 60.0
_STARTS = 3
_TRIES = 2
# The line of a process that ends is closed as good as last.
_END_SECONDS = 1.0
# A process in the midst of a read from a dead disk outlives even SIGKILL for a while.
_DEATH_SECONDS = 5.0


class Kill(StrEnum):
    """Why a decoder was killed by the data plane."""

    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    MALFORMED = "malformed"  # what it answered
    ENDED_EARLY = "ended_early"  # the work was cancelled, say
    RECYCLED = "recycled"
    NOT_STARTED = "not_started"


@dataclass(frozen=True)
class DecoderSettings:
    """What a decoder process may take, and when it is replaced."""

    memory_bytes: int = 2 << 30
    recycle_items: int = 1000
    recycle_bytes: int = 512 << 20
    module: str = "data_plane.decoders"


@dataclass
class Tally:
    """What happened so far."""

    spawned: int = 0
    items: int = 0
    crashes: int = 0
    lost: int = 0  # killed by others
    kills: dict[Kill, int] = field(default_factory=lambda: dict.fromkeys(Kill, 0))


@dataclass
class Child:
    """A process and the line to it."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    items: int = 0


class Decoder:
    """A decoder for one thread at a time, with a process from its first order on."""

    def __init__(
        self, settings: DecoderSettings, spawn: Callable[[DecoderSettings], Child]
    ) -> None:
        self._settings = settings
        self._spawn = spawn
        self._child: Child | None = None
        self._lock = threading.Lock()
        self._is_stopped = False
        self.tally = Tally()
        self.level = ""  # what confines the process, as `sandbox.confine` says

    def decode(
        self,
        order: Order,
        source_fd: int,
        output_fds: Sequence[int],
        deadline_seconds: float,
        check: Callable[[], None],
    ) -> Done | Failed:
        """Have an order done; `check` raises what ends it early, and the process with it."""
        self.tally.items += 1
        for _ in range(_TRIES):
            try:
                child = self._started(check)
                _rewind(source_fd, output_fds)
                reply = self._ask(child, order, [source_fd, *output_fds], deadline_seconds, check)
            except BaseException:
                self._kill(Kill.ENDED_EARLY)
                raise
            if reply is not None:
                self._recycle()
                _refuse_full_disk(reply)
                return reply
            # Killed by a person, or by a kernel that is short of memory: perhaps not its fault.
            self.tally.lost += 1
        return self._crashed("was killed twice by another process or for want of memory")

    def stop(self) -> None:
        """Kill the process, also while another thread waits for it, and start none again."""
        with self._lock:
            self._is_stopped = True
            if self._child is not None:
                self._child.process.kill()

    def close(self) -> None:
        """Clear up after `stop`, once no thread uses this decoder any more."""
        self._discard()

    def _started(self, check: Callable[[], None]) -> Child:
        if self._child is not None and self._child.process.poll() is None:
            return self._child
        self._discard()
        for _ in range(_STARTS):
            try:
                child = self._new_child()
                self.level = str(self._await(child, _START_SECONDS, check).get("level"))
            except (OSError, EOFError, Malformed, _Late, _OverMemory):
                self._kill(Kill.NOT_STARTED)
            else:
                return child
        raise Retry(
            "decoder_not_started",
            f"No decoder could be started in {_STARTS} tries; the worker's log may say why.",
        )

    def _new_child(self) -> Child:
        with self._lock:
            if self._is_stopped:
                raise Interrupted
            self._child = self._spawn(self._settings)
        self.tally.spawned += 1
        return self._child

    def _ask(
        self,
        child: Child,
        order: Order,
        descriptors: list[int],
        deadline_seconds: float,
        check: Callable[[], None],
    ) -> Done | Failed | None:
        """Return the answer to an order; None when somebody else has killed the process."""
        try:
            send(child.line, encode_order(order), descriptors)
            reply = decode_reply(self._await(child, deadline_seconds, check), order)
            _check_sizes(reply, descriptors[1:])
        except _Late:
            self._kill(Kill.TIMED_OUT)
            return Failed(
                Failure.TIMED_OUT, f"Not decoded within {deadline_seconds:g} seconds; given up."
            )
        except _OverMemory:
            self._kill(Kill.OUT_OF_MEMORY)
            return Failed(
                Failure.OUT_OF_MEMORY,
                f"Decoding it takes more than {self._settings.memory_bytes} bytes of memory:"
                " raise MEDIAPLANE_DECODER_MEMORY_BYTES.",
            )
        except (EOFError, ConnectionError):
            return self._explain_end(child)
        except (Malformed, TimeoutError):
            self._kill(Kill.MALFORMED)
            return self._crashed("did not answer as a decoder does")
        child.items += 1
        if isinstance(reply, Failed):
            return Failed(reply.code, _printable(reply.message))
        return reply

    def _await(self, child: Child, seconds: float, check: Callable[[], None]) -> dict[str, Any]:
        """Wait for a message, and watch time and memory meanwhile."""
        ends_at = time.monotonic() + seconds
        inbox = Inbox()
        while True:
            check()
            with suppress(TimeoutError):
                message = inbox.read(child.line)
                if message is not None:
                    return message
            if _resident_bytes(child) > self._settings.memory_bytes:
                raise _OverMemory
            if time.monotonic() > ends_at:
                raise _Late

    def _explain_end(self, child: Child) -> Failed | None:
        try:
            status = child.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill(Kill.MALFORMED)  # it has hung up, and lives
            return self._crashed("hung up on it")
        self._discard()
        if status == -signal.SIGKILL:
            return None
        return self._crashed(
            f"ended by signal {-status}" if status < 0 else f"exited with {status}"
        )

    def _crashed(self, what: str) -> Failed:
        self.tally.crashes += 1
        return Failed(Failure.CRASHED, f"The decoder {what}; the file may be hostile.")

    def _recycle(self) -> None:
        child = self._child
        if child is not None and (
            child.items >= self._settings.recycle_items
            or _resident_bytes(child) > self._settings.recycle_bytes
        ):
            self._kill(Kill.RECYCLED)

    def _kill(self, why: Kill) -> None:
        if self._child is not None:
            self.tally.kills[why] += 1
            self._child.process.kill()
            self._discard()

    def _discard(self) -> None:
        """Forget a process that has ended or is about to."""
        child, self._child = self._child, None
        if child is not None:
            child.line.close()
            # Should it take longer, the next process that is started here reaps it.
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(_DEATH_SECONDS)


class _Late(Exception):
    """The deadline is over."""


class _OverMemory(Exception):
    """The process takes more memory than it may."""


def _rewind(source_fd: int, output_fds: Sequence[int]) -> None:
    """Undo what an earlier try has left: processes share the position in an open file."""
    os.lseek(source_fd, 0, os.SEEK_SET)
    for output_fd in output_fds:
        os.ftruncate(output_fd, 0)
        os.lseek(output_fd, 0, os.SEEK_SET)


def _check_sizes(reply: Done | Failed, output_fds: Sequence[int]) -> None:
    sizes = [made.bytes_size for made in reply.made] if isinstance(reply, Done) else []
    if any(size != os.fstat(fd).st_size for size, fd in zip(sizes, output_fds, strict=False)):
        raise Malformed("A file is not as large as the decoder says.")


def _refuse_full_disk(reply: Done | Failed) -> None:
    """Put the order off when that is why nothing came of it."""
    if isinstance(reply, Failed) and reply.code is Failure.DISK_FULL:
        raise Retry("disk_full", "The disk of the scratch folder is full; make room there.")


def _resident_bytes(child: Child) -> int:
    try:
        with open(f"/proc/{child.process.pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0  # it has ended, which shows elsewhere


def _printable(text: str) -> str:
    """Replace what no database, log or terminal should be given."""
    return "".join(one if one.isprintable() else "?" for one in text)
