"""The items of a job: shared by workers, counted in the job, and left alone when it is to stop."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event

from data_plane import runner
from data_plane.executor import Context, Fail, Skip
from data_plane.registry import EXECUTORS
from mediaplane.protocol.values import JobKind
from tests.support import worker as hand
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.waiting import PATIENCE_SECONDS, eventually

COUNTERS = ("completed_items", "failed_items", "skipped_items", "cancelled_items")


def counters(desk: Desk, job_id: int) -> tuple[int, ...]:
    job = desk.job(job_id)
    return tuple(job[counter] for counter in COUNTERS)


def test_two_workers_share_the_items_of_a_probe(desk: Desk, database: Databases) -> None:
    with Worker(database.data, "one"), Worker(database.data, "two"):
        job_id = desk.probe(0.05, probe_items=20)
        job = desk.wait_for(job_id, "completed")
    items = desk.items(job_id)
    assert [(item["status"], item["lease_epoch"]) for item in items] == [("completed", 1)] * 20
    assert {item["worker_id"] for item in items} == {"one", "two"}
    assert counters(desk, job_id) == (20, 0, 0, 0)
    assert (job["processed_items"], job["progress"]) == (20, 1.0)


def test_a_job_ends_as_soon_as_another_slot_has_ended_its_last_item(
    desk: Desk, database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_ITEM_WAIT_SECONDS", 2 * PATIENCE_SECONDS)
    with Worker(database.data, slots=2):
        for _ in range(5):  # the other one is the last in most of them
            desk.wait_for(desk.probe(0.1, probe_items=2), "completed")


def test_items_of_a_job_that_was_asked_to_stop_are_not_claimed(
    desk: Desk, database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = desk.probe(probe_items=2)
    hand.claim(database.data)

    def cancel_meanwhile(*_: object) -> None:
        desk.cancel(job_id)

    patched = replace(EXECUTORS[JobKind.PROBE], run=cancel_meanwhile)
    monkeypatch.setitem(EXECUTORS, JobKind.PROBE, patched)
    helper = Worker(database.data, "helper")
    assert helper.runner.work_once()
    assert not helper.runner.work_once()
    assert [item["status"] for item in desk.items(job_id)] == ["completed", "pending"]


def test_a_paused_owner_gives_the_job_up_and_another_worker_finishes_it(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    with Worker(database.data, "owner") as owner:
        probe_by(lambda *_: owner.leases.paused.set())  # in the middle of its first item
        job_id = desk.probe(probe_items=20)
        eventually(lambda: counters(desk, job_id)[0] and not owner.leases.all())
        assert desk.job(job_id)["status"] == "pending"
        with Worker(database.data, "other"):
            job = desk.wait_for(job_id, "completed")
    assert (job["worker_id"], job["attempts"], job["lease_epoch"]) == ("other", 0, 2)
    assert {item["worker_id"] for item in desk.items(job_id)} == {"owner", "other"}
    # At most one item was claimed when the pause came, and put back before it began.
    assert sum(item["lease_epoch"] - 1 for item in desk.items(job_id)) <= 1


def test_an_item_found_unnecessary_counts_as_skipped_and_as_completed(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    def skip_second(row: dict[str, str], _ctx: Context) -> None:
        if row["item_key"] == "probe-1":
            raise Skip("It is there already.")

    probe_by(skip_second)
    job_id = desk.probe(probe_items=3)
    Worker(database.data).runner.work_once()
    assert desk.job(job_id)["status"] == "completed"
    assert counters(desk, job_id) == (3, 0, 1, 0)
    second = desk.items(job_id)[1]
    assert (second["status"], second["message"]) == ("skipped", "It is there already.")


def test_a_failed_item_fails_the_job_once_the_others_are_done(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    def fail_first(row: dict[str, str], _ctx: Context) -> None:
        if row["item_key"] == "probe-0":
            raise Fail("broken", "It is broken.")

    probe_by(fail_first)
    job_id = desk.probe(probe_items=3)
    Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["error_code"]) == ("failed", "items_failed")
    assert counters(desk, job_id) == (2, 1, 0, 0)


def test_a_paused_worker_finishes_what_it_has_and_claims_again_when_resumed(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    with Worker(database.data) as worker:

        def pause_midway(*_: object) -> None:
            worker.leases.paused.set()

        probe_by(pause_midway)
        first, second = desk.probes(2)
        # What is next would be claimed together with the end of the first.
        desk.wait_for(first, "completed")
        assert desk.job(second)["status"] == "pending"
        worker.leases.paused.clear()
        desk.wait_for(second, "completed")


def test_what_comes_after_a_pause_is_not_claimed_by_a_look_that_began_before_it(
    desk: Desk, database: Databases
) -> None:
    worker, first = Worker(database.data), desk.probe()
    later: list[int] = []

    def pause_and_add(_conn: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        # The look that goes with the end of the first.
        if worker.leases.all() and sql.startswith("SELECT") and not later:
            worker.leases.paused.set()
            later.append(desk.probe())

    event.listen(database.data.engine, "before_cursor_execute", pause_and_add)
    worker.runner.work_once()
    event.remove(database.data.engine, "before_cursor_execute", pause_and_add)
    assert desk.job(first)["status"] == "completed"
    assert [desk.job(job_id)["status"] for job_id in later] == ["pending"]
