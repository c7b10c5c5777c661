"""The database goes away, hangs up or is occupied, and the work goes on when it is back."""

import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import make_url, text

from tests.faults.site import Site
from tests.faults.zygote import Zygote
from tests.support import postgres
from tests.support.databases import administrator, build_schema, opened
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.waiting import eventually

HANG_UPS = 20
CRASHES = 2
LOCKED_SECONDS = 2.0
LOCKS = 3


@contextmanager
def admissions(site: Site) -> Iterator[list[float]]:
    """Ask for jobs for the duration; yields how many seconds each answer took."""
    seconds: list[float] = []
    stop = threading.Event()

    def ask() -> None:
        for number in count():
            if stop.wait(0.02):
                return
            seconds.append(site.insist(f"request-{number}", seconds=0.05, scratch_bytes=1000))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seconds
    finally:
        stop.set()
        thread.join()


def test_work_survives_connections_that_are_cut(
    postgres_site: Site, postgres_server: PostgresServer, chance: Random
) -> None:
    site, terminated, hang_ups = postgres_site, 0, 0
    site.admit_cut(30, seconds=0.02)
    processes = [site.start_worker(), site.start_worker(), site.start_control()]
    cut = text(
        "SELECT count(pg_terminate_backend(pid, :wait_ms)) FROM pg_stat_activity"
        " WHERE datname = :name AND pid <> pg_backend_pid()"
    )
    name = make_url(site.database.url).database
    site.wait_for_workers(2)
    with administrator(postgres_server.url) as conn, admissions(site):
        # Twenty times, and more than one each time, also while they reconnect.
        while terminated <= 2 * HANG_UPS or hang_ups < HANG_UPS:
            time.sleep(chance.uniform(0.05, 0.3))  # any moment is a good one
            terminated += int(conn.execute(cut, {"name": name, "wait_ms": 0}).scalar_one())
            hang_ups += 1
        # The last ones have to be gone: the queries below are asked only once.
        conn.execute(cut, {"name": name, "wait_ms": 60_000})
    site.wait_until_done()
    assert "terminating connection" in site.log.read_text()
    site.check(processes)


def test_a_server_that_crashes_and_comes_back_has_lost_nothing_it_acknowledged(
    zygote: Zygote, tmp_path: Path
) -> None:
    with running_postgres(durable=True) as server:
        if server.data_directory is None:
            pytest.skip("the server is not ours to stop")
        build_schema(server.url)
        with opened(server.url) as database, Site(database, zygote, tmp_path) as site:
            site.admit_cut(30, seconds=0.02)
            processes = [site.start_worker(), site.start_worker(), site.start_control()]
            with admissions(site) as answers:
                for _ in range(CRASHES):
                    wait_for_more(answers)
                    refusals = site.refusals
                    command = stop_at_once(server.data_directory)
                    eventually(lambda: site.refusals > refusals)  # noqa: B023 - called at once
                    time.sleep(1.5)  # longer than a lease
                    start(server.data_directory, command)
                wait_for_more(answers)
            site.wait_until_done()
            assert sum(seconds > 1.0 for seconds in answers) >= CRASHES
            site.check(processes)


def test_a_process_that_holds_the_write_lock_of_sqlite_only_makes_others_wait(
    sqlite_site: Site,
) -> None:
    site = sqlite_site
    site.admit_cut(30, seconds=0.02)
    processes = [site.start_worker(), site.start_worker(), site.start_control()]
    with admissions(site) as answers:
        wait_for_more(answers)
        holder = site.zygote.start(
            "lock_out", url=site.database.url, seconds=LOCKED_SECONDS, times=LOCKS
        )
        assert site.zygote.wait(holder) == 0
    site.wait_until_done()
    assert max(answers) > LOCKED_SECONDS / 2
    assert site.refusals == 0
    assert not site.log.exists() or "locked" not in site.log.read_text()
    site.check(processes)


def wait_for_more(answers: list[float]) -> None:
    before = len(answers)
    eventually(lambda: len(answers) > before + 20)


def stop_at_once(data: Path) -> list[str]:
    """End a server without a checkpoint, and return how it was started."""
    command = shlex.split((data / "postmaster.opts").read_text())
    pg_ctl = Path(command[0]).with_name("pg_ctl")
    postgres.run(
        [pg_ctl, "-s", "-D", data, "-m", "immediate", "-w", "-t", "180", "stop"], data.parent
    )
    return command


def start(data: Path, command: list[str]) -> None:
    pg_ctl, options = Path(command[0]).with_name("pg_ctl"), shlex.join(command[3:])
    log = data.parent / "log"
    postgres.run(
        [pg_ctl, "-s", "-D", data, "-l", log, "-o", options, "-w", "-t", "180", "start"],
        data.parent,
    )
