"""Clocks that jump by hours: a lease ends by the clock of the database, not by that of a worker."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

from mediaplane.protocol.tables import jobs
from tests.faults.site import Site
from tests.faults.witness import entries
from tests.faults.zygote import Zygote, running_zygote
from tests.support.waiting import eventually

HOUR_MS = 3_600_000
JOBS = 12
# Long enough that no lease lapses because the machine is busy.
LEASE_SECONDS = 600.0
SLOTS = 2


class FalseClock:
    """The clock of all processes forked from one zygote."""

    def __init__(self, path: Path, zygote: Zygote) -> None:
        self.path = path
        self.zygote = zygote

    def set(self, offset: str) -> None:
        """Set the clock, for instance to '+5h'."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(offset + "\n")
        fresh.rename(self.path)


@contextmanager
def false_clock(directory: Path) -> Iterator[FalseClock]:
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("libfaketime is missing: make tools installs it")
    path = directory / "clock"
    path.write_text("+0\n")
    environment = {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_TIMESTAMP_FILE": str(path),
        "FAKETIME_NO_CACHE": "1",
        # As in reality: no setting of a clock moves this one.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with running_zygote(**environment) as zygote:
        yield FalseClock(path, zygote)


def test_a_worker_whose_clock_jumps_by_hours_keeps_its_leases_and_takes_no_others(
    postgres_site: Site, tmp_path: Path
) -> None:
    site = postgres_site
    with false_clock(tmp_path) as clock:
        honest = [site.start_worker(lease_seconds=LEASE_SECONDS), site.start_control()]
        false_site = Site(site.database, clock.zygote, tmp_path)
        false = false_site.start_worker(lease_seconds=LEASE_SECONDS)
        site.wait_for_workers(2)
        for offset in ("+5h", "-5h", "+0"):
            eventually(lambda: are_all_at_work(site))
            clock.set(offset)
            site.wait_until_done()
        assert clock.zygote.kill(false)
    assert {1, -1} <= skews(site)
    assert site.repetitions() == 0
    with site.database.control.read() as conn:
        ended_at = conn.scalars(select(jobs.c.finished_at)).all()
    assert all(abs(at - time.time() * 1000) < HOUR_MS for at in ended_at)
    site.check(honest, clock=False)


def test_a_machine_whose_clock_jumps_ahead_by_hours_repeats_what_is_in_hand_at_most(
    sqlite_site: Site, tmp_path: Path
) -> None:
    """With SQLite there is one machine and one clock, and that clock is the database's.

    A jump ahead ends every lease at once, so work in hand may be done again; never twice at the
    end, and never not at all.
    """
    with false_clock(tmp_path) as clock:
        site = Site(sqlite_site.database, clock.zygote, tmp_path)
        processes = [site.start_worker(lease_seconds=LEASE_SECONDS) for _ in range(2)]
        processes.append(site.start_control())
        site.wait_for_workers(2)
        jumps = ("+5h", "+10h")
        for offset in jumps:
            eventually(lambda: are_all_at_work(site))
            clock.set(offset)
            site.wait_until_done()
        assert {0, 1} <= skews(site)
        in_hand = len(processes[:2]) * SLOTS
        assert site.repetitions() <= len(jumps) * in_hand
        for pid in processes:
            assert clock.zygote.kill(pid)
    sqlite_site.expected = site.expected
    sqlite_site.check(clock=False)


def are_all_at_work(site: Site) -> bool:
    """Tell whether both workers have something to do; when nothing is left, there is more."""
    if not site.count("pending", "running", "retryable"):
        site.admit(JOBS, seconds=0.3)
    return site.count("running") > SLOTS


def skews(site: Site) -> set[int]:
    """Return the directions in which the clocks of runs were off by hours; 0: not at all."""
    now_ms = time.time() * 1000
    off = {round((entry.at_ms - now_ms) / HOUR_MS) for entry in entries(site.account)}
    return {(hours > 0) - (hours < 0) for hours in off}
