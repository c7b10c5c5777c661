"""Starts the planes that a command needs, shares them between commands, stops them after the last.

Every command that uses a plane holds the writing end of the plane's standard input, a named pipe.
When the last one lets go of it, even by dying, the plane reads its end and stops by itself: no
plane outlives its users, and none is stopped under the hands of another command.
"""

import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mediaplane.client import CommandFailed, open_channel
from mediaplane.locations import Locations

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02
_TELL_AFTER_SECONDS = 1.0
_MAX_LOG_BYTES = 10 * 1024 * 1024
_SHOWN_LOG_LINES = 15
# The exit code of a plane that cannot use its settings or its database.
_REFUSED = 2


class Refused(CommandFailed):
    """A plane did not start because its settings or its database cannot be used as they are."""


@dataclass(frozen=True)
class Plane:
    """One of the two services, as a program to run."""

    name: str
    module: str
    address: str
    locations: Locations

    @property
    def log(self) -> Path:
        return self.locations.logs / f"{self.name}.log"

    @property
    def pipe(self) -> Path:
        return self.locations.runtime / f"{self.name}.pipe"

    @property
    def users(self) -> Path:
        """Locked, shared, by every command that uses the plane."""
        return self.locations.runtime / f"{self.name}.users"

    @property
    def life(self) -> Path:
        """Locked by the plane process itself as long as it lives; holds its process id."""
        return self.locations.runtime / f"{self.name}.life"


@dataclass
class Hold:
    """This command's use of a plane that commands have started."""

    plane: Plane
    # Closed in this order by a dying process: whoever is seen as a user still holds the pipe.
    users: int
    pipe: int
    # None when another command started it.
    process: subprocess.Popen[bytes] | None = None
    log_start: int = 0


def control_plane(locations: Locations) -> Plane:
    return Plane("control-plane", "control_plane", locations.local_control_address, locations)


def data_plane(locations: Locations) -> Plane:
    return Plane("data-plane", "data_plane", locations.local_data_address, locations)


@contextmanager
def running(planes: list[Plane]) -> Iterator[None]:
    """Have these planes serve for the duration, started by whoever comes first."""
    locations = planes[0].locations
    locations.prepare()
    holds: list[Hold] = []
    try:
        with turn(locations):
            _acquire(planes, holds)
        yield
    finally:
        if holds:
            with turn(locations):
                _release(holds)


def is_serving(address: str, timeout_seconds: float = 5.0) -> bool:
    """Tell whether a plane answers at an address and is ready for requests."""
    if address.startswith("unix:") and not is_connectable(address):
        return False  # gRPC would take longer to find out
    with open_channel(address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service="")
        try:
            answer = health.Check(request, timeout=timeout_seconds)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def command_line(module: str) -> list[str]:
    # Without -P a file of the user's own directory could take the place of a module.
    return [sys.executable, "-P", "-m", module]


def is_connectable(address: str) -> bool:
    """Tell whether anything accepts connections at a unix socket."""
    path = unquote_to_bytes(address.removeprefix("unix:"))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(1)
        try:
            sock.connect(b"/" + path.lstrip(b"/") if path.startswith(b"/") else path)
        except OSError:
            return False
    return True


@contextmanager
def turn(locations: Locations) -> Iterator[None]:
    """One command at a time starts or stops planes."""
    lock = os.open(locations.runtime / "turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _wait_for_lock(lock, _TELL_AFTER_SECONDS):
            _tell("Waiting for another mediaplane command that starts or stops the planes ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _acquire(planes: list[Plane], holds: list[Hold]) -> None:
    missing = []
    for plane in planes:
        hold = _join(plane)
        if hold:
            holds.append(hold)
            _check_joined(plane)
        elif not is_serving(plane.address):
            missing.append(plane)
    if len(missing) > 1 and not _has_sqlite_file(missing[0].locations):
        _upgrade(missing[0].locations)
        _start_all(missing, holds)
        return
    try:
        _start_all(missing, holds)
    except Refused:
        # Not looking before saves half the time: nearly always the schema is current. If not, no
        # plane works with it.
        refused = [hold for hold in holds if hold.plane in missing]
        holds[:] = [hold for hold in holds if hold not in refused]
        _release(refused)
        _upgrade(missing[0].locations)
        _start_all(missing, holds)


def _start_all(planes: list[Plane], holds: list[Hold]) -> None:
    started = [_start(plane) for plane in planes]
    holds += started
    deadline = time.monotonic() + _START_SECONDS
    for hold in started:
        _wait_until_serving(hold, deadline)


def _join(plane: Plane) -> Hold | None:
    """Take part in a plane that another command has started; None when there is none."""
    users = os.open(plane.users, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        pipe = os.open(plane.pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        pipe = -1  # no plane reads it, or there never was one
    # The pipe is held by now. If somebody else holds it too, the plane has not read its end.
    if pipe >= 0 and not _try_lock(users, fcntl.LOCK_EX):
        fcntl.flock(users, fcntl.LOCK_SH)
        return Hold(plane, users, pipe)
    os.close(users)
    if pipe >= 0:
        os.close(pipe)
    # One whose users were all killed is stopping by itself.
    _end(plane)
    return None


def _check_joined(plane: Plane) -> None:
    if not is_serving(plane.address):
        raise CommandFailed(
            f"Another mediaplane command has started the {plane.name}, but it does not answer at"
            f" {plane.address}. End that command, or use the same MEDIAPLANE_* settings."
        )


def _has_sqlite_file(locations: Locations) -> bool:
    url = urlsplit(locations.database_url)
    return url.scheme == "sqlite" and Path(unquote(url.path[1:])).exists()


def _upgrade(locations: Locations) -> None:
    from mediaplane.protocol import grants, migration  # noqa: PLC0415 - takes long to import

    migration.upgrade(locations.database_url)
    # Always: an upgrade may have been killed before it came to this.
    grants.apply_grants(locations.database_url)


def _start(plane: Plane) -> Hold:
    users = os.open(plane.users, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)
    reading, writing = _make_pipe(plane.pipe)
    life = os.open(plane.life, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(life, fcntl.LOCK_EX | fcntl.LOCK_NB)
    log = _open_log(plane.log)
    try:
        process = subprocess.Popen(
            command_line(plane.module),
            stdin=reading,
            stdout=log,
            stderr=log,
            # The lock lives in the plane from here on, and ends with it.
            pass_fds=[life],
            # Ctrl-C is for the command, which then stops the planes in order.
            start_new_session=True,
            env=os.environ | plane.locations.environment() | {"MEDIAPLANE_EXIT_ON_STDIN_EOF": "1"},
        )
        os.ftruncate(life, 0)
        os.write(life, b"%d\n" % process.pid)
        return Hold(plane, users, writing, process, os.fstat(log).st_size)
    finally:
        for descriptor in (reading, life, log):
            os.close(descriptor)


def _make_pipe(path: Path) -> tuple[int, int]:
    with suppress(FileNotFoundError):
        path.unlink()
    os.mkfifo(path, 0o600)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    writing = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.set_blocking(reading, True)
    return reading, writing


def _open_log(path: Path) -> int:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    found = os.fstat(log)
    if stat.S_ISREG(found.st_mode) and found.st_size > _MAX_LOG_BYTES:
        os.ftruncate(log, 0)
    return log


def _wait_until_serving(hold: Hold, deadline: float) -> None:
    assert hold.process
    while not is_serving(hold.plane.address):
        code = hold.process.poll()
        if code is not None:
            kind = Refused if code == _REFUSED else CommandFailed
            raise kind(_last_words(hold, f"did not start (exit code {code})"))
        if time.monotonic() > deadline:
            raise CommandFailed(_last_words(hold, f"did not serve within {_START_SECONDS:.0f} s"))
        time.sleep(_POLL_SECONDS)


def _last_words(hold: Hold, what: str) -> str:
    with hold.plane.log.open("rb") as log:
        log.seek(hold.log_start)
        lines = log.read().decode(errors="replace").strip().splitlines()
    said = "\n".join(lines[-_SHOWN_LOG_LINES:]) or f"It said nothing; see {hold.plane.log}."
    return f"The {hold.plane.name} {what}:\n{said}"


def _release(holds: list[Hold]) -> None:
    """Let go of the planes; the last user of each waits until it has stopped."""
    last = [hold for hold in holds if _try_lock(hold.users, fcntl.LOCK_EX)]
    for hold in holds:
        os.close(hold.pipe)
        os.close(hold.users)
    for hold in last:
        _end(hold.plane)
        if hold.process:
            hold.process.wait()


def _end(plane: Plane) -> None:
    """Return when a plane without users is gone: it stops by itself, or is made to."""
    life = os.open(plane.life, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _wait_for_lock(life, _STOP_SECONDS):
            return
        _signal(plane, signal.SIGTERM)
        if _wait_for_lock(life, _STOP_SECONDS):
            return
        _tell(f"The {plane.name} does not stop; ending it by force.")
        _signal(plane, signal.SIGKILL)
        fcntl.flock(life, fcntl.LOCK_EX)
    finally:
        os.close(life)


def _signal(plane: Plane, number: signal.Signals) -> None:
    """Send a signal to a plane that lives; its number cannot have passed to another program."""
    life = os.open(plane.life, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _try_lock(life, fcntl.LOCK_SH):
            return  # nobody holds it, so nothing lives
        pid = int(os.read(life, 32) or b"0")
        if pid > 0 and number == signal.SIGKILL:
            # It leads its own group: whatever it has started goes with it.
            os.killpg(pid, number)
        elif pid > 0:
            os.kill(pid, number)
    except ProcessLookupError:
        pass  # gone in this moment
    finally:
        os.close(life)


def _wait_for_lock(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _try_lock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tell(message: str) -> None:
    sys.stderr.write(message + "\n")
    sys.stderr.flush()
