"""Planes that are told to stop under load stop in order and in time, and no job is lost by it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import grpc
import pytest
from sqlalchemy import create_engine, func, select, text
from sqlalchemy.pool import NullPool

from control_plane.policy import admission
from control_plane.policy.admission import Wanted
from mediaplane.client import Client
from mediaplane.errors import CallerError
from mediaplane.planes import is_serving
from mediaplane.protocol.tables import assets, jobs
from mediaplane.protocol.values import JobKind
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1.maintenance_service_pb2 import GetStatisticsRequest
from tests.faults import invariants
from tests.faults.site import Site
from tests.faults.test_control_planes import Caller, asked, calling
from tests.support.planes import LIBRARY, Desk
from tests.support.studio import photo
from tests.support.waiting import PATIENCE_SECONDS, eventually

# 4 keep the run short; MEDIAPLANE_TEST_SIGNALS=100 is the whole test.
SIGNALS = int(os.environ.get("MEDIAPLANE_TEST_SIGNALS", "4"))
# Far more than any stop takes, so that a busy machine is not mistaken for a plane that hangs.
GRACE_SECONDS = 60.0
LEASE_SECONDS = 600.0
KINDS = (JobKind.SCAN, JobKind.HASH, JobKind.VERIFY, JobKind.SWEEP)


class Planes:
    """Both planes as processes, each replaced when it has been told to stop."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.stops: list[float] = []  # seconds that each took
        self.address, control = self.start("control_plane")
        self.running = {"control_plane": control, "data_plane": self.start("data_plane")[1]}

    def start(self, module: str) -> tuple[str, subprocess.Popen[bytes]]:
        settings = {"stop_grace_seconds": GRACE_SECONDS}
        if module == "data_plane":
            settings["lease_seconds"] = LEASE_SECONDS
        address, process = self.site.start_plane(module, 0, **settings)
        eventually(lambda: is_serving(address) or process.poll() is not None)
        assert process.poll() is None, f"{module} did not start: {self.site.log.read_text()}"
        return address, process

    def stop(self, module: str) -> None:
        process = self.running[module]
        told_at = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(3 * GRACE_SECONDS) == 0, f"{module}: {self.site.log.read_text()}"
        self.stops.append(time.monotonic() - told_at)

    def restart(self, module: str) -> None:
        self.stop(module)
        self.running[module] = self.start(module)[1]


def test_planes_told_to_stop_under_load_stop_within_the_grace_and_lose_no_job(
    site: Site, chance: Random, tmp_path: Path
) -> None:
    desk = Desk(site.database.control)
    desk.add_library(make_library(tmp_path / "library"))
    planes, stop = Planes(site), threading.Event()
    callers = [Caller(planes.address, stop, name) for name in ("one", "two")]
    with calling(callers, stop):
        for number in range(SIGNALS):
            before = asked(callers)
            site.admit(4, seconds=chance.uniform(0, 0.3))
            site.admit_cut(6, seconds=0.02)
            ask_for_work_on_files(site, KINDS[number % len(KINDS)])
            eventually(lambda: site.count("running") and asked(callers) > before)  # noqa: B023
            time.sleep(chance.uniform(0, 0.1))  # any moment is a good one
            planes.restart(("data_plane", "control_plane")[number % 2])
    site.expected |= {job: "completed" for one in callers for job in one.acknowledged.values()}
    site.wait_until_done()
    eventually(lambda: not unfinished_assets(site))
    for module in planes.running:
        planes.stop(module)
    print(f"{len(planes.stops)} stops, the longest {max(planes.stops):.2f} s")  # noqa: T201
    assert max(planes.stops) < GRACE_SECONDS
    invariants.check(site.database, site.expected, None)
    assert attempts(site) == 0  # whatever was in hand was put back in order, and not given up
    assert list((site.state / "scratch").iterdir()) == []


def make_library(root: Path) -> Path:
    root.mkdir()
    for number in range(4):
        (root / f"picture {number}.jpg").write_bytes(photo(seed=number))
    for number in range(60):
        (root / f"{number}.bin").write_bytes(b"%03d" % (number // 2) * 5000)
    return root


def ask_for_work_on_files(site: Site, kind: JobKind) -> None:
    wanted = Wanted(kind, LIBRARY if kind is not JobKind.SWEEP else None, max_attempts=100)
    # One of them may be under way already: then that is load enough.
    with suppress(CallerError), site.database.control.write() as conn:
        site.expected[int(admission.create(conn, wanted)["id"])] = "completed"


def unfinished_assets(site: Site) -> int:
    with site.database.control.read() as conn:
        query = select(func.count()).select_from(assets).where(assets.c.status != "proxied")
        return int(conn.scalar(query) or 0)


def attempts(site: Site) -> int:
    with site.database.control.read() as conn:
        return int(conn.scalar(select(func.sum(jobs.c.attempts))) or 0)


def test_a_control_plane_in_a_statement_without_end_stops_when_its_grace_is_over(
    site: Site,
) -> None:
    address, plane = site.start_plane("control_plane", 0, stop_grace_seconds=0.5)
    eventually(lambda: is_serving(address))
    with endless_statistics(site), Client(address) as client:
        must_hang(client.maintenance_service.GetStatistics, GetStatisticsRequest())
        plane.send_signal(signal.SIGTERM)
        assert plane.wait(PATIENCE_SECONDS) == 0, site.log.read_text()
    assert "called off" in site.log.read_text()


def test_a_control_plane_that_waits_for_a_lock_of_sqlite_ends_all_the_same(
    sqlite_site: Site,
) -> None:
    site = sqlite_site
    address, plane = site.start_plane("control_plane", 0, stop_grace_seconds=0.1)
    eventually(lambda: is_serving(address))
    engine = create_engine(site.database.url, poolclass=NullPool)
    with engine.connect() as conn, Client(address) as client:
        conn.exec_driver_sql("BEGIN IMMEDIATE")
        job = jobs_v1.Job(kind=jobs_v1.JOB_KIND_PROBE)
        must_hang(client.job_service.CreateJob, jobs_v1.CreateJobRequest(job=job))
        plane.send_signal(signal.SIGTERM)
        assert plane.wait(PATIENCE_SECONDS) == 1
    engine.dispose()
    assert "ending anyway" in site.log.read_text()


def must_hang(call: Callable[..., object], request: object) -> None:
    """Make a call that gets no answer; the server goes on with it when its caller has given up."""
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=1)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@contextmanager
def endless_statistics(site: Site) -> Iterator[None]:
    """Have the count of the duplicates never end."""
    engine = create_engine(site.database.url, poolclass=NullPool)
    with engine.begin() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("LOCK TABLE duplicate_groups IN ACCESS EXCLUSIVE MODE"))
        else:
            columns = [row[1] for row in conn.execute(text("PRAGMA table_info(duplicate_groups)"))]
            shown = ", ".join(f"number AS {name}" for name in columns)
            conn.execute(text("ALTER TABLE duplicate_groups RENAME TO hidden"))
            conn.execute(text(
                "CREATE VIEW duplicate_groups AS WITH RECURSIVE numbers(number) AS"
                " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers)"
                f" SELECT {shown} FROM numbers"
            ))  # fmt: skip
            conn.commit()
        yield
    engine.dispose()
