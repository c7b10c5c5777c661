"""The counters of a job: exact whatever becomes of its items, and complete when it has ended."""

from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from mediaplane.protocol import gate
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Lease
from mediaplane.protocol.machines import JOB_ITEMS, JOBS, MAX_ITEM_CLAIMS
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.steps import EPOCH, HELD, WORKER, write

ENDINGS = [step.name for step in JOBS.steps if step.target in JOBS.final]
# What the row of a job needs, beside its status, for an ending to be legal.
READY: dict[str, dict[str, Any]] = {
    "exhaust": {"attempts": 4},
    "drop_cancelled": {"cancel_requested_at": LONG_AGO},
}
# How an item comes to its end before the job does: the step, and the counters it raises.
OUTCOMES: dict[str, tuple[str, ...]] = {
    "complete": ("completed",),
    "fail": ("failed",),
    "skip": ("skipped", "completed"),
    "cancel": ("cancelled",),
    "poison": ("failed",),
    "skip_waiting": ("skipped", "completed"),
}
UNFINISHED = ("pending", "running")


class Item(NamedTuple):
    """An item of a job, and what becomes of it: a step of OUTCOMES, or it is left unfinished."""

    weight: int
    fate: str


def add_job(conn: Connection, items: list[Item]) -> tuple[int, list[int]]:
    """A running job with items in the status that their fate begins from."""
    rows = Rows(conn)
    total = sum(item.weight for item in items)
    job = rows.add("jobs", **HELD, status="running", total_items=total)
    ids = []
    for item in items:
        columns: dict[str, Any] = dict(HELD, status="running")
        if item.fate in ("pending", "skip_waiting"):
            columns = {"status": "pending"}
        elif item.fate == "poison":
            columns |= {"lease_epoch": MAX_ITEM_CLAIMS, "lease_expires_at": LONG_AGO}
        ids.append(rows.add("job_items", job_id=job, total_items=item.weight, **columns))
    return job, ids


def meet_fates(database: Databases, items: list[Item], ids: list[int]) -> None:
    """Take the step of each item: those of the owner in batches, the others one by one."""
    by_fate: dict[str, list[int]] = {name: [] for name in (*OUTCOMES, *UNFINISHED)}
    for item, item_id in zip(items, ids, strict=True):
        by_fate[item.fate].append(item_id)
    with database.data.write(*WRITE_PATHS) as conn:
        for name in ("complete", "fail", "skip", "cancel"):
            ended: list[tuple[Lessee, dict[str, Any]]] = [
                (Lessee(item_id, WORKER, EPOCH), {}) for item_id in by_fate[name]
            ]
            assert gate.finish(conn, JOB_ITEMS, name, ended) == set(by_fate[name])
    with database.control.write() as conn:
        for name in ("poison", "skip_waiting"):
            for item_id in by_fate[name]:
                assert gate.take(conn, JOB_ITEMS, name, item_id)


def end(database: Databases, job: int, ending: str) -> bool:
    """End the job, from a status in which that is legal."""
    step = JOBS.step(ending)
    columns = {"status": str(step.sources[0])} | READY.get(ending, {})
    assignments = ", ".join(f"{column} = :{column}" for column in columns)
    with database.control.write() as conn:
        conn.execute(text(f"UPDATE jobs SET {assignments} WHERE id = :id"), columns | {"id": job})
    with write(database, step.plane) as conn:
        lessee = Lessee(job, WORKER, EPOCH) if step.lease is Lease.DROP else None
        return gate.take(conn, JOBS, ending, job, lessee)


def counters(database: Databases, job: int) -> dict[str, int]:
    with database.control.read() as conn:
        row = Rows(conn).get("jobs", job)
    names = ("total", "completed", "failed", "skipped", "cancelled")
    return {name: row[f"{name}_items"] for name in names}


def expected(items: list[Item], *, is_ended: bool) -> dict[str, int]:
    totals = dict.fromkeys(("total", "completed", "failed", "skipped", "cancelled"), 0)
    for item in items:
        totals["total"] += item.weight
        left: tuple[str, ...] = ("cancelled",) if is_ended else ()
        for counter in OUTCOMES.get(item.fate, left):
            totals[counter] += item.weight
    return totals


ITEMS = st.lists(
    st.builds(
        Item,
        weight=st.integers(0, 2**33),
        fate=st.sampled_from([*OUTCOMES, *UNFINISHED]),
    ),
    max_size=8,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(items=ITEMS, ending=st.sampled_from(ENDINGS))
def test_the_counters_are_exact_for_any_items_outcomes_and_ending(
    database: Databases, items: list[Item], ending: str
) -> None:
    with database.control.write() as conn:
        job, ids = add_job(conn, items)
    meet_fates(database, items, ids)
    assert counters(database, job) == expected(items, is_ended=False)
    is_legal = ending != "complete" or not any(item.fate in UNFINISHED for item in items)
    assert end(database, job, ending) is is_legal
    after = counters(database, job)
    assert after == expected(items, is_ended=is_legal)
    if is_legal:
        assert after["completed"] + after["failed"] + after["cancelled"] == after["total"]


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != "complete"])
def test_no_item_outlives_its_job_and_those_that_ended_before_stay_as_they_are(
    database: Databases, ending: str
) -> None:
    items = [Item(3, fate) for fate in (*OUTCOMES, *UNFINISHED)]
    with database.control.write() as conn:
        job, ids = add_job(conn, items)
        stranger = Rows(conn).add("job_items", **HELD, status="running")
    meet_fates(database, items, ids)
    assert end(database, job, ending)
    targets = {step.name: step.target for step in JOB_ITEMS.steps}
    with database.control.read() as conn:
        rows = [Rows(conn).get("job_items", item) for item in ids]
        assert Rows(conn).get("job_items", stranger)["status"] == "running"
    assert [row["status"] for row in rows] == [
        targets.get(item.fate, "cancelled") for item in items
    ]
    revoked = rows[-2:]
    assert {row["worker_id"] for row in revoked} == {None}
    assert {row["lease_expires_at"] for row in revoked} == {None}
    assert None not in {row["finished_at"] for row in rows}


@pytest.mark.parametrize("name", ["complete", "fail", "skip", "cancel", "release"])
def test_a_revoked_item_cannot_be_finished_nor_counted_again(
    database: Databases, name: str
) -> None:
    with database.control.write() as conn:
        job, (item,) = add_job(conn, [Item(3, "running")])
    assert end(database, job, "cancel")
    before = counters(database, job)
    with database.data.write(*WRITE_PATHS) as conn:
        mine = Lessee(item, WORKER, EPOCH)
        assert gate.finish(conn, JOB_ITEMS, name, [(mine, {})]) == set()
        assert gate.heartbeat(conn, JOB_ITEMS, WORKER, {item: EPOCH}, 60) == {}
    assert counters(database, job) == before


def test_a_step_that_is_rolled_back_counts_nothing(database: Databases) -> None:
    with database.control.write() as conn:
        job, (item,) = add_job(conn, [Item(3, "complete")])
    with suppress(LookupError), database.data.write(*WRITE_PATHS) as conn:
        ended: list[tuple[Lessee, dict[str, Any]]] = [(Lessee(item, WORKER, EPOCH), {})]
        assert gate.finish(conn, JOB_ITEMS, "complete", ended) == {item}
        raise LookupError
    assert counters(database, job) == expected([Item(3, "pending")], is_ended=False)


def test_items_of_many_jobs_in_one_batch_count_for_their_own_job(database: Databases) -> None:
    with database.control.write() as conn:
        jobs = [add_job(conn, [Item(number, "complete")] * 2) for number in range(1, 6)]
    ended: list[tuple[Lessee, dict[str, Any]]] = [
        (Lessee(item, WORKER, EPOCH), {}) for _job, items in reversed(jobs) for item in items
    ]
    with database.data.write(*WRITE_PATHS) as conn:
        gate.finish(conn, JOB_ITEMS, "complete", ended)
    assert [counters(database, job)["completed"] for job, _items in jobs] == [2, 4, 6, 8, 10]
