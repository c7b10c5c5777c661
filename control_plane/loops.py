"""The control plane's own work, each in a thread that runs until the plane stops."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from control_plane.policy import (
    checkpoints,
    discovery,
    planning,
    recovery,
    regrouping,
    retention,
    runs,
    tokens,
)
from control_plane.policy.backoff import Backoff
from control_plane.settings import ControlSettings
from mediaplane.protocol import wal
from mediaplane.protocol.database import Database, Topic
from mediaplane.tokens import Tokens

log = logging.getLogger(__name__)

_ACCESS_SECONDS = 60.0
_CHECKPOINT_SECONDS = 1.0
# How soon a loop that waits for a ring notices that the plane stops.
_STOP_SECONDS = 0.1


def start(
    database: Database, settings: ControlSettings, known: Tokens, stop: threading.Event
) -> list[threading.Thread]:
    """Start all loops."""
    backoff = Backoff(
        settings.retry_base_seconds, settings.retry_max_seconds, settings.retry_jitter
    )

    def may_write_much() -> bool:
        return not (stop.is_set() or wal.is_congested(database))

    def absorb() -> None:
        while may_write_much() and discovery.absorb(database):
            pass

    def recover() -> None:
        recovery.recover(database, backoff)

    def attend() -> None:
        while may_write_much() and runs.attend(database, settings.retention_days):
            pass

    def note_use() -> None:
        tokens.note_use(database, known)
        while retention.forget_calls(database, settings.audit_days) and not stop.is_set():
            pass

    often = settings.recovery_seconds
    threads = [
        _loop(
            "absorb",
            absorb,
            settings.absorb_seconds,
            stop,
            _pause_of_scans(database, stop),
        ),
        _loop("recovery", recover, often, stop),
        _loop("regrouping", partial(regrouping.settle_all, database, may_write_much), often, stop),
        _loop("planning", partial(planning.resume, database), often, stop),
        _loop("schedules", attend, settings.schedule_seconds, stop),
        _loop("access", note_use, _ACCESS_SECONDS, stop),
    ]
    if database.dialect == "sqlite":
        interval_seconds = settings.checkpoint_interval_seconds
        keep_small = partial(checkpoints.keep_small, database, interval_seconds)
        threads.append(_loop("checkpoint", keep_small, _CHECKPOINT_SECONDS, stop))
    return threads


def _pause_of_scans(database: Database, stop: threading.Event) -> Callable[[float], object]:
    """Return a pause that ends early when a scan has something to be taken over."""
    if database.bell is None:
        return stop.wait
    ear = database.bell.listen(Topic.SCANS)

    def pause(seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while not stop.is_set() and (left := ends_at - time.monotonic()) > 0:
            if ear.wait(min(left, _STOP_SECONDS)):
                return

    return pause


def _loop(
    name: str,
    work: Callable[[], None],
    seconds: float,
    stop: threading.Event,
    pause: Callable[[float], object] | None = None,
) -> threading.Thread:
    pause = pause or stop.wait

    def run() -> None:
        while not stop.is_set():
            try:
                work()
            except Exception:
                if stop.is_set():
                    return  # called off, most likely
                # The database may be restarting or its disk full: go on when it is back.
                log.exception("The %s loop met an error and goes on", name)
                stop.wait(1.0)
            pause(seconds)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
