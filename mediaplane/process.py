"""The main function that both planes share."""

import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from mediaplane import settings, traces
from mediaplane.errors import UnusableDatabase, UnusableSettings
from mediaplane.locations import Locations
from mediaplane.logs import LogFormatter
from mediaplane.protocol.database import explain

Settings = TypeVar("Settings")

log = logging.getLogger(__name__)

# Beyond the grace, for what has to be done when it is over.
LAST_RESORT_SECONDS = 4.0

# Rows come by the ten thousand and are all forgotten together; to look for cycles among them after
# every 700, which is the default, took a fifth of the time of a scan.
GARBAGE_THRESHOLD = 50_000

# By default glibc has eight heaps for each processor, and what is free in one is of no use to
# threads of another: SQLite's pages, which every thread takes and gives back by the megabyte, made
# half of a plane's memory unused.
_M_ARENA_MAX = -8
_HEAPS = 1


def main(kind: type[Settings], run: Callable[..., None]) -> int:
    """Run a plane as a process: settings from the environment, errors as one line."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)
    shown = logging.StreamHandler(sys.stderr)
    # A level of its own: loggers may be opened wider for a record that is kept in memory.
    shown.setLevel(logging.WARNING)
    shown.setFormatter(LogFormatter())
    logging.basicConfig(handlers=[shown])
    try:
        chosen = settings.read(kind, os.environ)
        locations = Locations.from_environment(os.environ)
        stop = stop_requested(on_stdin_eof=getattr(chosen, "exit_on_stdin_eof", False))
        if traces.is_on():
            traces.tracer(run.__module__.partition(".")[0])
        exit_in_time(stop, getattr(chosen, "stop_grace_seconds", 0.0))
        run(locations, chosen, stop)
    except (UnusableDatabase, UnusableSettings) as error:
        print(f"mediaplane: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except OperationalError as error:
        print(f"mediaplane: The database does not answer: {explain(error)}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def exit_in_time(stop: threading.Event, grace_seconds: float) -> None:
    """Have the process end some time after it was told to stop, whatever holds it up.

    It can be killed at any instant, so this loses nothing either.
    """

    def end() -> None:
        stop.wait()
        time.sleep(grace_seconds + LAST_RESORT_SECONDS)
        log.error("Not everything ended within the grace of %g s; ending anyway", grace_seconds)
        logging.shutdown()
        os._exit(1)

    threading.Thread(target=end, name="last-resort", daemon=True).start()


def stop_requested(*, on_stdin_eof: bool) -> threading.Event:
    """Return an event that SIGTERM, SIGINT or, where asked for, the end of standard input sets."""
    stop = threading.Event()
    signalled, signal_sent = os.pipe()
    os.set_blocking(signal_sent, False)

    def wait_for_signal() -> None:
        os.read(signalled, 1)
        stop.set()

    def wait_for_eof() -> None:
        # By descriptor: the lock of sys.stdin would be held at interpreter shutdown.
        while os.read(0, 4096):
            pass
        stop.set()

    threading.Thread(target=wait_for_signal, name="signal", daemon=True).start()
    # Written to by the interpreter itself: a handler would wait for the main thread, which may be
    # in a long statement. Nor could a handler set the event, whose lock that thread may hold.
    signal.set_wakeup_fd(signal_sent)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if on_stdin_eof:
        # Whoever started this process holds the other end: when it dies, so do we.
        threading.Thread(target=wait_for_eof, name="stdin", daemon=True).start()
    return stop
