"""Waiting for what happens elsewhere, always with a deadline."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")

# Only what fails waits so long: a machine that others share has stood still for a minute.
PATIENCE_SECONDS = 180.0


def eventually(look: Callable[[], Found], seconds: float = PATIENCE_SECONDS) -> Found:
    """Look again and again until there is something to see, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {found!r} after {seconds} seconds")
        time.sleep(0.005)
    return found


def promptly(attempt: Callable[[], float], seconds: float, attempts: int = 5) -> None:
    """Fail unless an attempt takes less than these seconds; return with the first that does.

    A machine that stands still for a moment delays one of them; what is slow delays them all.
    """
    taken: list[float] = []
    while len(taken) < attempts:
        taken.append(attempt())
        if taken[-1] < seconds:
            return
    raise AssertionError(f"took {taken} seconds, and none of them less than {seconds}")


def let_the_clock_tick(path: Path) -> None:
    """Wait until a change of a file would show in its times, which are a few ms coarse."""
    probe = path.with_name("probe")

    def has_ticked() -> bool:
        probe.write_bytes(b"")
        return probe.stat().st_ctime_ns > path.stat().st_ctime_ns

    eventually(has_ticked)
    probe.unlink()


@contextmanager
def must_not_block(seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Fail, instead of hanging, when what is done here does not end."""

    def give_up(signum: int, frame: object) -> None:
        raise AssertionError(f"blocked for {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
