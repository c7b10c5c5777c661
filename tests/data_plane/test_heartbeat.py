"""A worker keeps its leases while it works, says so, and hears when it has lost them."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from data_plane import heartbeat
from data_plane.executor import Context, Executor, LeaseLost
from data_plane.registry import EXECUTORS
from mediaplane.protocol.values import JobKind, WorkerCommand
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.waiting import PATIENCE_SECONDS, eventually

WORK_SECONDS = 3.0


@pytest.fixture
def job_id(desk: Desk, tmp_path: Path) -> int:
    desk.add_library(tmp_path)
    return desk.create(JobKind.SCAN)


@pytest.fixture
def long_work(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Work that goes on until the event is set, or until it is told to end."""
    done = threading.Event()

    def run(_task: object, ctx: Context) -> None:
        while not done.wait(0.005):
            ctx.control.items += 1
            ctx.control.check()

    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    monkeypatch.setitem(EXECUTORS, JobKind.SCAN, Executor(nothing, run, nothing))
    return done


def test_a_lease_of_a_second_outlasts_three_seconds_of_work(
    desk: Desk, database: Databases, job_id: int, long_work: threading.Event
) -> None:
    with Worker(database.data, "patient", lease_seconds=1), Worker(database.data, "greedy"):
        started = desk.wait_for(job_id, "running")["started_at"]
        beaten = eventually(
            lambda: desk.job(job_id)["worker_heartbeat_at"] > started + WORK_SECONDS * 1000
        )
        long_work.set()
        job = desk.wait_for(job_id, "completed")
    assert beaten
    assert (job["lease_epoch"], job["attempts"]) == (1, 0)
    assert job["finished_at"] - job["started_at"] >= WORK_SECONDS * 1000
    told = [event for event in desk.history(job_id) if event != "job_progress"]
    assert told == ["job_added", "job_started", "job_done"]


def test_progress_is_written_and_never_goes_back(
    desk: Desk, database: Databases, job_id: int, long_work: threading.Event
) -> None:
    with Worker(database.data):
        first = eventually(lambda: desk.job(job_id)["processed_items"])
        second = eventually(lambda: max(desk.job(job_id)["processed_items"] - first, 0))
        long_work.set()
        job = desk.wait_for(job_id, "completed")
    assert second > 0
    assert job["processed_items"] >= first + second


def test_progress_that_a_beat_could_not_write_is_written_with_the_end(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    refused = threading.Event()

    def refuse(_conn: object, _cursor: object, sql: str, *_: object) -> None:
        if sql.startswith("UPDATE jobs") and threading.current_thread().name == "heartbeat":
            refused.set()
            raise ConnectionError("in the middle of a beat")

    def work(_row: object, ctx: Context) -> None:
        ctx.control.items = 7
        assert refused.wait(PATIENCE_SECONDS)

    probe_by(work)
    event.listen(database.data.engine, "before_cursor_execute", refuse)
    try:
        with Worker(database.data):
            job = desk.wait_for(desk.probe(), "completed")
    finally:
        event.remove(database.data.engine, "before_cursor_execute", refuse)
    assert job["processed_items"] == 7


def test_a_lost_lease_ends_the_work_and_leaves_the_row_alone(
    desk: Desk, database: Databases, job_id: int, long_work: threading.Event
) -> None:
    with Worker(database.data, "late") as worker:
        held = eventually(worker.leases.all)
        desk.change("UPDATE jobs SET lease_epoch = lease_epoch + 1, worker_id = 'new'")
        taken = desk.job(job_id)
        eventually(lambda: not worker.leases.all())
        with pytest.raises(LeaseLost):
            held[0].control.check()
    assert desk.job(job_id) == taken


def test_a_request_to_cancel_reaches_the_work(
    desk: Desk, database: Databases, job_id: int, long_work: threading.Event
) -> None:
    with Worker(database.data) as worker:
        held = eventually(worker.leases.all)
        desk.cancel(job_id)
        desk.wait_for(job_id, "cancelled")
    assert held[0].control.cancelled.is_set()


def test_a_worker_outlives_a_database_that_refuses_its_transactions(
    desk: Desk, database: Databases, job_id: int, long_work: threading.Event
) -> None:
    refused: set[str] = set()

    def refuse(*_: object) -> None:
        refused.add(threading.current_thread().name.partition("-")[0])
        raise ConnectionError("as a driver's own error, in nobody's wrapping")

    engine = database.data.engine
    with Worker(database.data, slots=2):
        eventually(lambda: desk.job(job_id)["processed_items"])
        event.listen(engine, "begin", refuse)
        try:
            eventually(lambda: refused == {"slot", "heartbeat"})
        finally:
            event.remove(engine, "begin", refuse)
        before = desk.job(job_id)["processed_items"]
        eventually(lambda: desk.job(job_id)["processed_items"] > before)
        assert len([one for one in threading.enumerate() if one.name.startswith("slot-")]) == 2
        long_work.set()
        assert desk.wait_for(job_id, "completed")["lease_epoch"] == 1


def test_a_worker_says_again_and_again_that_it_is_there_and_what_it_does(
    desk: Desk, database: Databases, job_id: int, long_work: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(heartbeat, "_PRESENCE_SECONDS", 0.05)
    with Worker(database.data, "one"):
        first = desk.worker("one")
        eventually(lambda: desk.worker("one")["last_seen_at"] > first["last_seen_at"])
        eventually(lambda: desk.worker("one")["stats"]["running"] == 1)
        assert desk.worker("one")["state"] == "processing"
        long_work.set()
        eventually(lambda: desk.worker("one")["stats"]["running"] == 0)
        eventually(lambda: desk.worker("one")["state"] == "idle")
    assert desk.worker("one")["started_at"] == first["started_at"]


def test_a_command_is_obeyed_once_and_again_only_when_it_is_given_again(
    desk: Desk, database: Databases
) -> None:
    with Worker(database.data, "one") as worker:
        for times in (1, 2):
            desk.command("one", WorkerCommand.FORENSIC_DUMP)
            eventually(lambda: len(worker.commands) >= times)  # noqa: B023 - called at once
            # Another command is heard after it: had it been obeyed twice, it would show.
            desk.command("one", WorkerCommand.PAUSE)
            eventually(lambda: WorkerCommand.PAUSE in worker.commands)
            worker.commands.remove(WorkerCommand.PAUSE)
    assert worker.commands == [WorkerCommand.FORENSIC_DUMP] * 2


def test_a_worker_is_listed_while_it_runs_and_offline_afterwards(
    desk: Desk, database: Databases
) -> None:
    with Worker(database.data, "one"):
        with Worker(database.data, "two"):
            assert desk.workers() == {"one": "idle", "two": "idle"}
        assert desk.workers() == {"one": "idle", "two": "offline"}
    assert desk.workers() == {"one": "offline", "two": "offline"}
