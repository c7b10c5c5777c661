"""A process is killed before every statement and around every commit, and others take over."""

import signal
from itertools import count

import pytest
from sqlalchemy import delete, select, text
from sqlalchemy.engine import RowMapping

from control_plane.policy import admission, recovery
from data_plane.registry import EXECUTORS
from mediaplane.protocol import gate
from mediaplane.protocol.database import Database
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.tables import events, job_items, jobs, worker_status
from mediaplane.protocol.values import JobKind
from mediaplane.protocol.write_paths import paths_of
from tests.faults import invariants
from tests.faults.scenarios import AT_ONCE, DEEDS, ITEMS, govern, wanted
from tests.faults.site import Site
from tests.faults.witness import witnessed
from tests.support.planes import Worker
from tests.support.points import share


@pytest.fixture(autouse=True)
def _account_of_those_who_take_over(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, JobKind.PROBE, witnessed(site.account))


def test_a_worker_killed_at_any_statement_leaves_work_that_the_next_one_ends(site: Site) -> None:
    for die_at in share(count(1), is_sqlite=site.database.control.dialect == "sqlite"):
        clear(site)
        with site.database.control.write() as conn:
            for rank, deed in enumerate(DEEDS):
                admission.create(conn, wanted(deed, priority=-rank))
            admission.create(conn, wanted("cut", ITEMS, priority=1))
        places = {"url": site.database.url, "account": str(site.account)}
        code = site.zygote.wait(site.zygote.start("work_mortally", **places, die_at=die_at))
        take_over(site)
        with site.database.control.read() as conn:
            rows = conn.execute(select(jobs)).mappings().all()
        invariants.check(site.database, {row["id"]: ending(row) for row in rows}, site.account)
        assert len(rows) == len(DEEDS) + 1
        if code == 0:
            break
        assert code == -signal.SIGKILL
    print(f"lived on at point {die_at}")  # noqa: T201
    assert die_at > 60


def test_a_control_plane_killed_at_any_statement_has_done_a_thing_or_not(site: Site) -> None:
    for die_at in share(count(1), is_sqlite=site.database.control.dialect == "sqlite"):
        clear(site)
        ids = leave_behind(site)
        arguments = {"cancelled": ids["to be cancelled"], "hurried": ids["to be hurried"]}
        code = site.zygote.wait(
            site.zygote.start("govern_mortally", url=site.database.url, die_at=die_at, **arguments)
        )
        govern(site.database.control, **arguments)  # who got no answer asks again
        take_over(site)
        with site.database.control.read() as conn:
            rows = conn.execute(select(jobs)).mappings().all()
        expected = {row["id"]: ending(row) for row in rows}
        invariants.check(site.database, expected, site.account)
        asked = {*ids, "one", "cut", "first", "second"}
        assert sorted(row["request_id"] for row in rows) == sorted(asked)
        cancelled = {one for one in expected if expected[one] == "cancelled"}
        assert cancelled == {ids["stopped"], ids["to be cancelled"]}
        if code == 0:
            break
        assert code == -signal.SIGKILL
    print(f"lived on at point {die_at}")  # noqa: T201
    assert die_at > 60


def clear(site: Site) -> None:
    with site.database.control.write() as conn:
        for table in (events, job_items, jobs, worker_status):
            conn.execute(delete(table))
    site.account.unlink(missing_ok=True)


def leave_behind(site: Site) -> dict[str, int]:
    """Make jobs in every state in which a control plane has something to decide."""
    ids: dict[str, int] = {}
    for name, items in (("silent", 0), ("silent cut", ITEMS), ("stopped", 0), ("to be hurried", 0)):
        with site.database.control.write() as conn:
            ids[name] = admission.create(conn, wanted(name, items))["id"]
    gone = "gone"
    with site.database.data.write(*paths_of(JOBS, "claim")) as conn:
        claimed = gate.claim(conn, JOBS, "claim", gone, 60, len(ids))
        assert len(claimed) == len(ids)
    with site.database.data.write(*paths_of(JOB_ITEMS, "claim")) as conn:
        assert len(gate.claim(conn, JOB_ITEMS, "claim", gone, 60, 1)) == 1
    lessee = gate.Lessee(ids["to be hurried"], gone, 1)
    with site.database.data.write(*paths_of(JOBS, "retry")) as conn:
        assert gate.take(conn, JOBS, "retry", lessee.row_id, lessee, error_code="test",
                         error_message="Not this time.")  # fmt: skip
    with site.database.control.write() as conn:
        admission.cancel(conn, None, ids["stopped"])
        ids["to be cancelled"] = admission.create(conn, wanted("to be cancelled"))["id"]
    expire(site.database.control)
    return ids


def take_over(site: Site) -> None:
    """Let the leases of the dead lapse, and a new worker do what is left."""
    worker = Worker(site.database.data, "next")
    while site.count("pending", "running", "retryable"):
        expire(site.database.control)
        recovery.recover(site.database.control, AT_ONCE)
        while worker.runner.work_once():
            pass
    worker.bell.close()


def expire(database: Database) -> None:
    with database.write() as conn:
        for table in ("jobs", "job_items"):
            conn.execute(text(f"UPDATE {table} SET lease_expires_at = 1 WHERE status = 'running'"))


def ending(job: RowMapping) -> str:
    return "cancelled" if job["cancel_requested_at"] is not None else "completed"
