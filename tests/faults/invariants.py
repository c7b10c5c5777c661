"""What must be true of jobs that have ended, whatever happened to whoever worked on them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from mediaplane.protocol.machines import MAX_ITEM_CLAIMS
from mediaplane.protocol.tables import events, job_items, jobs
from mediaplane.protocol.values import EventType, JobKind
from tests.faults.witness import Entry, entries
from tests.support.databases import Databases

# The clock of the database and that of a run are one, but each rounds to milliseconds its way.
ROUNDING_MS = 2

PUT_BACK = "Put back by its worker"
REQUEUED = "Waits for a worker again"
_LETTERS = {
    EventType.JOB_ADDED: "A",
    EventType.JOB_STARTED: "S",
    EventType.JOB_ERROR: "E",
    EventType.JOB_CANCELLED: "C",
    EventType.JOB_DONE: "D",
}
# One event per move: every start is followed by exactly one end of that start.
_STORIES = {
    "completed": re.compile(r"A(S(EQ|B))*SD"),
    "failed": re.compile(r"A(S(EQ|B))*SED"),
    "cancelled": re.compile(r"A(S(EQ|B))*(S?CD|SECD)"),
}


def check(
    database: Databases, expected: Mapping[int, str], account: Path | None, *, clock: bool = True
) -> None:
    """Fail unless these jobs have ended as expected, and nothing was lost, done twice or forged.

    Jobs that run outside the reach of a witness have no account; runs whose clock was tampered
    with have no times to compare.
    """
    with database.control.read() as conn:
        rows = {row["id"]: row for row in conn.execute(select(jobs)).mappings()}
        items = list(conn.execute(select(job_items).order_by(job_items.c.id)).mappings())
        told = list(conn.execute(select(events).order_by(events.c.id)).mappings())
    assert rows.keys() >= expected.keys(), f"lost: {sorted(expected.keys() - rows.keys())}"
    of_job, history = _by_job(items), _by_job(told)
    for job_id, status in expected.items():
        _check_story(rows[job_id], status, of_job[job_id], history[job_id])
        if rows[job_id]["total_items"] is not None:
            _check_items(rows[job_id], of_job[job_id], history[job_id])
    if account is not None:
        mine = [rows[job_id] for job_id in expected]
        parts = [item for job_id in expected for item in of_job[job_id]]
        _check_account(mine, parts, told, entries(account), clock=clock)
    check_file(database)


def check_file(database: Databases) -> None:
    """Fail unless SQLite finds its file whole."""
    if database.control.dialect == "sqlite":
        with database.control.read() as conn:
            assert conn.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert conn.exec_driver_sql("PRAGMA foreign_key_check").all() == []


def _by_job(rows: Iterable[RowMapping]) -> dict[int, list[RowMapping]]:
    grouped: dict[int, list[RowMapping]] = defaultdict(list)
    for row in rows:
        grouped[row["job_id"]].append(row)
    return grouped


def _letter(event: RowMapping) -> str:
    if event["type"] == EventType.LOG:
        said = event["payload"]["message"]
        return "B" if said.startswith(PUT_BACK) else "Q" if said.startswith(REQUEUED) else ""
    return _LETTERS.get(event["type"], "")


def _check_story(
    job: RowMapping, expected: str, items: Sequence[RowMapping], history: Sequence[RowMapping]
) -> None:
    story = "".join(map(_letter, history))
    about = f"job {job['id']} ({job['status']}, claim {job['lease_epoch']}): {story}"
    # An item in whose hands every worker died ends its job, and nothing else does.
    poisoned = [item for item in items if item["status"] == "failed"]
    if poisoned and expected == "completed":
        assert {item["lease_epoch"] for item in poisoned} == {MAX_ITEM_CLAIMS}, about
        expected = "failed"
    assert job["status"] == expected, about
    assert _STORIES[expected].fullmatch(story), about
    assert story.count("S") == job["lease_epoch"], about
    assert story.count("Q") == job["attempts"], about
    assert history[-1]["type"] == EventType.JOB_DONE, about


def _check_items(
    job: RowMapping, items: Sequence[RowMapping], history: Sequence[RowMapping]
) -> None:
    statuses: Counter[str] = Counter()
    for item in items:
        statuses[item["status"]] += _weight(job, item)
    counted = {status: job[f"{status}_items"] for status in ("completed", "failed", "cancelled")}
    total = sum(counted.values())
    assert total == job["total_items"] == statuses.total(), f"job {job['id']}: {counted}"
    assert counted == {status: statuses[status] for status in counted}, f"job {job['id']}"
    done = Counter(one["payload"]["item"] for one in history if one["type"] == EventType.ITEM_DONE)
    assert done == {item["id"]: 1 for item in items}, f"job {job['id']}: {done}"


def _weight(job: RowMapping, item: RowMapping) -> int:
    """Return what an item counts in its job: one, or the files of a shard."""
    return int(item["total_items"]) if job["kind"] in (JobKind.HASH, JobKind.VERIFY) else 1


def _check_account(
    rows: Sequence[RowMapping],
    items: Sequence[RowMapping],
    told: Sequence[RowMapping],
    account: Sequence[Entry],
    *,
    clock: bool,
) -> None:
    runs: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in account:
        runs[entry.table, entry.row_id].append(entry)
    done_at = {("jobs", one["job_id"]): one["created_at"] for one in told if _letter(one) == "D"}
    done_at |= {
        ("job_items", one["payload"]["item"]): one["created_at"]
        for one in told
        if one["type"] == EventType.ITEM_DONE
    }
    whole = [("jobs", row) for row in rows if row["total_items"] is None]
    for table, row in whole + [("job_items", item) for item in items]:
        if row["status"] == "completed":
            key = (table, row["id"])
            _check_runs(row, runs[key], done_at[key] if clock else None)


def _check_runs(row: Any, runs: Sequence[Entry], done_at: int | None) -> None:
    """The run that was believed is the last one, it came to its end, and not after the fact."""
    about = f"{row['id']} ({row['worker_id']}, claim {row['lease_epoch']}): {runs}"
    marks = Counter((entry.what, entry.epoch) for entry in runs)
    assert max(marks.values()) == 1, f"a claim ran twice: {about}"
    assert max(entry.epoch for entry in runs) == row["lease_epoch"], f"done again: {about}"
    ends = [one for one in runs if (one.what, one.epoch) == ("end", row["lease_epoch"])]
    assert [end.worker for end in ends] == [row["worker_id"]], f"a stale write: {about}"
    if done_at is not None:
        assert ends[0].at_ms <= done_at + ROUNDING_MS, f"a stale write: {about}"
