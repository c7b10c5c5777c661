"""The history of a job: what each event says, in which order, and that it ends for good."""

import re
from typing import Any

import pytest
from sqlalchemy import text

from mediaplane.protocol import gate, history
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Lease, Machine
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.values import EventType
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.steps import EPOCH, HELD, LEASE_SECONDS, OTHER_WORKER, WORKER, history_of, write

TASK = {
    "url": "https://example.org/ü?a=1&b='2'",
    "engine": "native",
    "output_folder": 'a "folder"',
    "is_resumed": True,
    "limit": None,
    "headers": {"accept": None, "range": [0, 1.5, {"deep": False}]},
}
ADDED = {"kind": "delete", "library": "photos"} | TASK
STARTED = TASK | {"worker": WORKER}
NO_FIGURES: dict[str, Any] = {
    "total_items": None,
    "completed_items": 0,
    "failed_items": 0,
    "skipped_items": 0,
    "cancelled_items": 0,
}

A_LIFE = re.compile(
    "job_added job_started( item_progress| item_done| job_progress)*"
    "( job_error| job_cancelled)? job_done"
)


def types(database: Databases, job: int) -> list[str]:
    with database.control.read() as conn:
        return [event for event, _payload in history_of(conn, job)]


def add_task(database: Databases, items: int = 0, **columns: Any) -> tuple[int, list[int]]:
    """A job that waits, with items, and its history so far."""
    with database.control.write() as conn:
        rows = Rows(conn)
        library = rows.add("libraries", slug="photos")
        job = rows.add("jobs", library_id=library, payload=TASK, **columns)
        ids = [
            rows.add("job_items", job_id=job, item_key=f"key {number}", total_items=1,
                     total_bytes=9, payload={"file_path": f"a/{number}"})
            for number in range(items)
        ]  # fmt: skip
        history.append(conn, EventType.JOB_ADDED, [job])
    return job, ids


def claim(database: Databases, machine: Machine, limit: int = 1) -> list[Lessee]:
    with database.data.write(*WRITE_PATHS) as conn:
        rows = gate.claim(conn, machine, "claim", WORKER, LEASE_SECONDS, limit)
    return [Lessee(row["id"], WORKER, row["lease_epoch"]) for row in rows]


def finish(database: Databases, machine: Machine, step: str, lessee: Lessee, **values: Any) -> bool:
    with database.data.write(*WRITE_PATHS) as conn:
        return gate.take(conn, machine, step, lessee.row_id, lessee, **values)


def beat(database: Databases, lessees: list[Lessee], done_bytes: int) -> None:
    leases = {lessee.row_id: lessee.epoch for lessee in lessees}
    figures = {row_id: {"processed_bytes": done_bytes} for row_id in leases}
    with database.data.write(*WRITE_PATHS) as conn:
        kept = gate.heartbeat(conn, JOB_ITEMS, WORKER, leases, LEASE_SECONDS, figures)
    assert kept.keys() == leases.keys()


def let_half_a_second_pass(database: Databases, job: int) -> None:
    """As far as the job knows."""
    with database.control.write() as conn:
        ago = {"ms": history.PROGRESS_MS, "job": job}
        conn.execute(text("UPDATE jobs SET progress_at = progress_at - :ms WHERE id = :job"), ago)


def test_a_job_without_items_is_told_from_beginning_to_end(database: Databases) -> None:
    job, _items = add_task(database)
    (mine,) = claim(database, JOBS)
    assert finish(database, JOBS, "complete", mine)
    with database.control.read() as conn:
        assert history_of(conn, job) == [
            ("job_added", ADDED),
            ("job_started", STARTED),
            ("job_done", {"status": "completed", "processed_items": 0} | NO_FIGURES),
        ]


def test_a_job_of_no_library_and_no_payload_says_so(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs")
        history.append(conn, EventType.JOB_ADDED, [job])
        assert history_of(conn, job) == [("job_added", {"kind": "delete", "library": None})]


def test_a_payload_cannot_pass_itself_off_as_the_job(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", payload={"kind": "scan", "worker": "nobody", "x": 1})
        history.append(conn, EventType.JOB_ADDED, [job])
    claim(database, JOBS)
    with database.control.read() as conn:
        assert history_of(conn, job) == [
            ("job_added", {"kind": "delete", "library": None, "worker": "nobody", "x": 1}),
            ("job_started", {"kind": "scan", "worker": WORKER, "x": 1}),
        ]


def test_every_try_of_a_job_is_told(database: Databases) -> None:
    job, _items = add_task(database)
    (mine,) = claim(database, JOBS)
    error = {"error_code": "io", "error_message": "The disk is away."}
    assert finish(database, JOBS, "retry", mine, **error)
    with database.control.write() as conn:
        assert gate.take(conn, JOBS, "requeue_now", job)
    (mine,) = claim(database, JOBS)
    assert finish(database, JOBS, "release", mine)
    (mine,) = claim(database, JOBS)
    assert finish(database, JOBS, "cancel", mine)

    def said(step: str) -> tuple[str, dict[str, str]]:
        return "log", {"level": "info", "message": JOBS.step(step).says}

    with database.control.read() as conn:
        assert history_of(conn, job) == [
            ("job_added", ADDED),
            ("job_started", STARTED),
            ("job_error", error),
            said("requeue_now"),
            ("job_started", STARTED),
            said("release"),
            ("job_started", STARTED),
            ("job_cancelled", {}),
            ("job_done", {"status": "cancelled", "processed_items": 0} | NO_FIGURES),
        ]


def test_the_items_of_a_job_are_told_with_what_became_of_them(database: Databases) -> None:
    job, (first, second) = add_task(database, items=2, total_items=2)
    (mine,) = claim(database, JOBS)
    one, other = claim(database, JOB_ITEMS, 2)
    beat(database, [one], 4)
    assert finish(database, JOB_ITEMS, "complete", one)
    let_half_a_second_pass(database, job)
    assert finish(database, JOB_ITEMS, "fail", other, message="Gone.")
    assert finish(database, JOBS, "fail", mine, error_code="io", error_message="One is missing.")
    progress = {"processed_items": 0, "progress": 0.0, "total_items": 2, "completed_items": 0,
                "failed_items": 0, "skipped_items": 0, "cancelled_items": 0}  # fmt: skip
    with database.control.read() as conn:
        assert history_of(conn, job)[2:] == [
            ("item_progress", {"item": first, "downloaded_bytes": 4, "total_bytes": 9}),
            ("job_progress", progress),
            ("item_done", {"item": first, "file_id": "key 0", "file_path": "a/0", "success": True,
                           "status": "completed", "message": None}),
            ("item_done", {"item": second, "file_id": "key 1", "file_path": "a/1",
                           "success": False, "status": "failed", "message": "Gone."}),
            ("job_progress", progress | {"completed_items": 1, "failed_items": 1}),
            ("job_error", {"error_code": "io", "error_message": "One is missing."}),
            ("job_done", {"status": "failed", "processed_items": 0, "total_items": 2,
                          "completed_items": 1, "failed_items": 1, "skipped_items": 0,
                          "cancelled_items": 0}),
        ]  # fmt: skip


def test_an_item_without_a_path_has_an_empty_one_and_a_skipped_one_has_succeeded(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running")
        item = Rows(conn).add("job_items", job_id=job)
        assert gate.take(conn, JOB_ITEMS, "skip_waiting", item, message="There already.")
        (_type, payload) = history_of(conn, job)[0]
    assert (payload["file_path"], payload["success"]) == ("", True)
    assert (payload["status"], payload["message"]) == ("skipped", "There already.")


@pytest.mark.parametrize("ending", ["complete", "fail", "cancel"])
@pytest.mark.parametrize("left", [0, 3])
def test_whatever_happens_a_life_is_told_in_the_same_order(
    database: Databases, ending: str, left: int
) -> None:
    job, _items = add_task(database, items=6, total_items=6)
    (mine,) = claim(database, JOBS)
    lessees = claim(database, JOB_ITEMS, 6)
    for lessee in lessees[left:]:
        beat(database, [lessee], 1)
        let_half_a_second_pass(database, job)
        assert finish(database, JOB_ITEMS, "complete", lessee)
    is_legal = ending != "complete" or not left
    assert finish(database, JOBS, ending, mine) is is_legal
    if not is_legal:
        assert "job_done" not in types(database, job)
        assert finish(database, JOBS, "cancel", mine)
    line = types(database, job)
    assert A_LIFE.fullmatch(" ".join(line))
    assert line.count("item_done") == 6


def test_a_job_that_takes_its_items_with_it_tells_of_them_before_its_own_end(
    database: Databases,
) -> None:
    job, _items = add_task(database, items=3, total_items=3)
    (mine,) = claim(database, JOBS)
    claim(database, JOB_ITEMS, 1)
    assert finish(database, JOBS, "cancel", mine)
    with database.control.read() as conn:
        line = history_of(conn, job)[2:]
    assert [event for event, _payload in line] == [
        *["item_done"] * 3, "job_progress", "job_cancelled", "job_done",
    ]  # fmt: skip
    assert line[-1][1]["cancelled_items"] == 3


def attempt_everything(database: Databases, job: int, item: int, epoch: int) -> None:
    """Take every step there is, as everybody who ever held the job or the item."""
    for machine, row_id in ((JOBS, job), (JOB_ITEMS, item)):
        for step in machine.steps:
            for worker in (WORKER, OTHER_WORKER):
                lessee = Lessee(row_id, worker, epoch)
                with write(database, step.plane) as conn:
                    match step.lease:
                        case Lease.TAKE:
                            assert gate.claim(conn, machine, step.name, worker, 60, 9) == []
                        case Lease.KEEP:
                            assert not gate.take(conn, machine, step.name, row_id, lessee, 60)
                        case Lease.DROP:
                            assert not gate.take(conn, machine, step.name, row_id, lessee)
                        case Lease.ABSENT | Lease.REAP:
                            assert not gate.take(conn, machine, step.name, row_id)
                        case Lease.REVOKE:
                            continue


@pytest.mark.parametrize(
    "ending", [step.name for step in JOBS.steps if step.target in JOBS.final]
)  # fmt: skip
def test_after_its_end_no_step_adds_to_the_history_of_a_job(
    database: Databases, ending: str
) -> None:
    step = JOBS.step(ending)
    with database.control.write() as conn:
        rows = Rows(conn)
        columns = {"attempts": 4, "cancel_requested_at": LONG_AGO, "retry_after": LONG_AGO}
        job = rows.add("jobs", **HELD | columns, status=step.sources[0], total_items=1)
        status = "completed" if ending == "complete" else "running"
        item = rows.add(
            "job_items", **HELD | {"worker_id": OTHER_WORKER}, job_id=job, status=status
        )
    with write(database, step.plane) as conn:
        lessee = Lessee(job, WORKER, EPOCH) if step.lease is Lease.DROP else None
        assert gate.take(conn, JOBS, ending, job, lessee)
        before = history_of(conn, job)
    assert before[-1][0] == "job_done"
    attempt_everything(database, job, item, EPOCH)
    with database.control.read() as conn:
        assert history_of(conn, job) == before
