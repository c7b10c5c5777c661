"""Control planes that are killed and that race each other run every schedule exactly once."""

import os
from pathlib import Path
from random import Random

from sqlalchemy import func, select

from mediaplane.protocol.tables import jobs
from mediaplane.protocol.values import JobKind
from tests.faults.site import Site
from tests.faults.test_clocks import HOUR_MS, false_clock
from tests.support import worker
from tests.support.schedules import Calendar
from tests.support.waiting import eventually

PLANES = 3
RUNS = int(os.environ.get("MEDIAPLANE_SCHEDULE_RUNS", "12"))
KILLED_EVERY = 3


def test_each_run_happens_once_while_control_planes_are_killed(site: Site, chance: Random) -> None:
    calendar = Calendar(site.database)
    calendar.add("tidy", "sweep")
    planes = [site.start_control(schedule_seconds=0.05) for _ in range(PLANES)]
    killed = 0
    for number in range(1, RUNS + 1):
        calendar.make_due("tidy")
        if number % KILLED_EVERY == 0:
            # At any moment of the run: before it is begun, meanwhile, or when its job has ended.
            assert site.zygote.kill(planes.pop(chance.randrange(len(planes))))
            planes.append(site.start_control(schedule_seconds=0.05))
            killed += 1
        eventually(lambda: site.count("pending") == 1)
        worker.finish(site.database.data, worker.claim(site.database.data))
        eventually(lambda: calendar.get("tidy")["last_outcome"] == "completed")
        assert site.count("completed") == number
    assert killed == RUNS // KILLED_EVERY
    for plane in planes:
        site.zygote.end(plane)
    assert site.count("pending", "running", "retryable") == 0
    # A second attempt at a run would have been refused by the first one's job, and noted.
    assert calendar.get("tidy")["last_skip_reason"] is None
    assert calendar.get("tidy")["last_job_id"] == last_job(site)


def is_one_ready(site: Site) -> bool:
    """Tell whether one job waits, and can be claimed: a hash has been planned."""
    is_planned = (jobs.c.kind != JobKind.HASH) | jobs.c.total_items.is_not(None)
    query = select(func.count()).select_from(jobs).where(jobs.c.status == "pending", is_planned)
    with site.database.control.read() as conn:
        return conn.execute(query).scalar_one() == 1


def test_a_run_over_all_libraries_is_carried_on_by_whoever_is_left(site: Site) -> None:
    calendar = Calendar(site.database)
    libraries = [calendar.library(f"library-{number}") for number in range(4)]
    calendar.add("nightly", "rescan")
    calendar.make_due("nightly")
    plane = site.start_control(schedule_seconds=0.05)
    done = []
    for _ in range(len(libraries) + 1):
        eventually(lambda: is_one_ready(site))
        assert site.zygote.kill(plane)
        job = worker.claim(site.database.data)
        worker.finish(site.database.data, job)
        done.append(job["library_id"])
        plane = site.start_control(schedule_seconds=0.05)
    eventually(lambda: calendar.get("nightly")["last_outcome"] == "completed")
    site.zygote.end(plane)
    assert done == [*libraries, None]  # the hash at the end is of all


def test_a_control_plane_whose_clock_is_ahead_runs_nothing_before_its_time(
    postgres_site: Site, tmp_path: Path
) -> None:
    calendar = Calendar(postgres_site.database)
    calendar.add("tidy", "sweep", cron="@hourly")
    calendar.add("monthly", "verify", library_id=calendar.library("photos"))
    calendar.make_due("monthly", late_ms=-2 * HOUR_MS)
    with false_clock(tmp_path) as clock:
        clock.set("+5h")
        ahead = Site(postgres_site.database, clock.zygote, tmp_path)
        ahead.start_control(schedule_seconds=0.05)
        calendar.make_due("tidy")
        eventually(lambda: calendar.get("tidy")["last_outcome"] == "running")
        clock.zygote.clear()
    assert [kind for kind, *_ in calendar.jobs()] == ["sweep"]
    assert calendar.get("tidy")["next_run_at"] - calendar.now() <= HOUR_MS


def last_job(site: Site) -> int:
    with site.database.control.read() as conn:
        return int(conn.execute(select(jobs.c.id).order_by(jobs.c.id.desc()).limit(1)).scalar_one())
