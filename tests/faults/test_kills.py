"""Workers are killed and stopped at random, again and again, and the work gets done once."""

import os
import signal
import threading
import time
from random import Random

from sqlalchemy import select

from mediaplane.protocol.tables import jobs, worker_status
from tests.faults import invariants
from tests.faults.roles import WORKER
from tests.faults.site import Site
from tests.faults.witness import entries
from tests.support.waiting import eventually

CREW = 3
LEASE_SECONDS: float = WORKER["lease_seconds"]
STOP_SECONDS = LEASE_SECONDS * 1.4
# One of so many blows stops a worker for longer than its lease, one kills the control plane.
STOP_SHARE = 0.15
CONTROL_SHARE = 0.1


class Storm:
    """Keeps a crew of workers and a control plane running, and strikes at them."""

    def __init__(self, site: Site, chance: Random) -> None:
        self.site = site
        self.chance = chance
        self.crew = [site.start_worker() for _ in range(CREW)]
        self.control = site.start_control()
        self.stopped: set[int] = set()
        self.kills = self.control_kills = self.long_stops = 0

    def __str__(self) -> str:
        return (
            f"{self.kills} workers killed, {self.control_kills} control planes killed,"
            f" {self.long_stops} workers stopped beyond their lease"
        )

    def strike(self) -> None:
        """Do harm to one process, and replace it if it is gone."""
        kind = self.chance.random()
        victims = [pid for pid in self.crew if pid not in self.stopped]
        if kind < CONTROL_SHARE:
            self.control_kills += self.site.zygote.kill(self.control)
            self.control = self.site.start_control()
        elif kind < CONTROL_SHARE + STOP_SHARE and len(victims) > 1:
            victim = self.chance.choice(victims)
            self.stopped.add(victim)
            os.kill(victim, signal.SIGSTOP)
            # By a thread: it may hold what this one waits for.
            threading.Timer(STOP_SECONDS, self.wake, [victim, time.monotonic()]).start()
        elif victims:
            victim = self.chance.choice(victims)
            self.kills += self.site.zygote.kill(victim)
            self.crew[self.crew.index(victim)] = self.site.start_worker()

    def wake(self, pid: int, stopped_at: float) -> None:
        """Let a process go on."""
        self.long_stops += time.monotonic() - stopped_at > LEASE_SECONDS
        os.kill(pid, signal.SIGCONT)
        self.stopped.remove(pid)

    def is_over(self, kills: int) -> bool:
        """Tell whether every sort of blow fell often enough, and hit who had work in hand."""
        assert self.kills < 20 * kills, self
        return (
            self.kills >= kills
            and min(self.control_kills, self.long_stops) >= kills // 25
            and self.site.repetitions() >= kills // 5
        )

    def feed(self) -> None:
        """Have some more work waiting than the crew can do before the next blow."""
        if self.site.count("pending") < 4 * CREW:
            self.site.admit(4, seconds=self.chance.uniform(0.02, 0.15), scratch_bytes=100_000)
            self.site.admit(4)
            self.site.admit_cut(4, seconds=0.01, scratch_bytes=1000)


def test_work_is_done_once_whoever_is_killed_or_stopped(
    site: Site, chance: Random, kills: int
) -> None:
    storm = Storm(site, chance)
    while not storm.is_over(kills):
        storm.feed()
        time.sleep(chance.uniform(0.0, 0.2))  # any moment is a good one
        storm.strike()
    eventually(lambda: not storm.stopped)
    site.wait_until_done()
    site.check([*storm.crew, storm.control])
    print(f"{storm}, {len(site.expected)} jobs, {site.repetitions()} claims again")  # noqa: T201


def test_a_worker_that_is_given_the_work_it_has_lost_ends_it_once(site: Site) -> None:
    (job,) = site.admit(1, seconds=4 * LEASE_SECONDS)
    processes = [site.start_worker(), site.start_control()]
    eventually(lambda: entries(site.account))
    os.kill(processes[0], signal.SIGSTOP)
    eventually(lambda: site.status(job) == "pending")
    os.kill(processes[0], signal.SIGCONT)
    site.wait_until_done()
    site.check(processes)
    starts = [entry for entry in entries(site.account) if entry.what == "start"]
    assert [entry.epoch for entry in starts[:2]] == [1, 2]
    assert len({entry.worker for entry in starts}) == 1


def test_a_data_plane_that_is_killed_with_work_in_hand_loses_none_of_it(site: Site) -> None:
    # More than two slots can do while this test looks away.
    site.admit(20, seconds=1.0, scratch_bytes=100_000)
    control = site.start_control()
    for number in range(3):
        _address, plane = site.start_plane("data_plane", number)
        eventually(lambda: has_work(site, plane.pid))  # noqa: B023 - called at once
        plane.kill()
        assert plane.wait() == -signal.SIGKILL
    _address, last = site.start_plane("data_plane", 3, slots=20)
    site.wait_until_done()
    last.terminate()
    assert last.wait() == 0
    assert site.repetitions() >= 3
    site.zygote.end(control)
    invariants.check(site.database, site.expected, None)
    site.check_scratch()


def has_work(site: Site, pid: int) -> bool:
    """Tell whether a process holds the lease of a job."""
    with site.database.control.read() as conn:
        known = conn.execute(select(worker_status.c.worker_id, worker_status.c.stats))
        mine = [row.worker_id for row in known if row.stats["pid"] == pid]
        held = select(jobs.c.id).where(jobs.c.status == "running", jobs.c.worker_id.in_(mine))
        return conn.execute(held).first() is not None
