"""However a piece of work ends, its row takes exactly one step."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_plane import registry
from data_plane.executor import (
    Cancelled,
    Context,
    Executor,
    Fail,
    HashResult,
    Interrupted,
    LeaseLost,
    Retry,
    Skip,
)
from data_plane.registry import EXECUTORS
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.rows import LONG_AGO, Rows

STARTED = ["job_added", "job_started"]


@pytest.fixture
def job_id(desk: Desk, tmp_path: Path) -> int:
    """A scan that waits for a worker."""
    desk.add_library(tmp_path)
    return desk.create(JobKind.SCAN)


@pytest.fixture
def item_id(database: Databases) -> int:
    """A shard, of a hash that somebody else holds, that waits for a worker."""
    with database.control.write() as conn:
        rows = Rows(conn)
        now = rows.now()
        held = rows.add(
            "jobs", kind="hash", status="running", lease_expires_at=now + 60_000, total_items=1
        )
        shard = {"first_file_id": 1, "last_file_id": 1}
        item: int = rows.add("job_items", job_id=held, payload=shard)
        return item


@pytest.fixture
def do(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets every kind of work be what a test says."""

    def install(
        run: Callable[[Any, Context], Any], record: Callable[..., None] = lambda *_: None
    ) -> None:
        for kind in EXECUTORS:
            monkeypatch.setitem(EXECUTORS, kind, Executor(lambda *_: None, run, record))

    return install


def ending(how: BaseException) -> Callable[..., None]:
    def run(*_: object) -> None:
        raise how

    return run


def crash(*_: object) -> None:
    raise ZeroDivisionError("secret detail /home/user/private")


@pytest.mark.parametrize(
    ("how", "status", "code", "events"),
    [
        (Fail("bad", "It is bad."), "failed", "bad", ["job_error", "job_done"]),
        (Retry("busy", "It is busy."), "retryable", "busy", ["job_error"]),
        (Cancelled(), "cancelled", None, ["job_cancelled", "job_done"]),
        (Interrupted(), "pending", None, ["log"]),
        (LeaseLost(), "running", None, []),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_end_of_a_job_is_one_step(
    desk: Desk, database: Databases, job_id: int, do: Callable[..., None],
    how: Exception, status: str, code: str | None, events: list[str],
) -> None:  # fmt: skip
    do(ending(how))
    assert Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["error_code"]) == (status, code)
    assert job["error_message"] == (str(how) if code else None)
    assert (job["lease_expires_at"] is None) == (status != "running")
    assert desk.history(job_id) == STARTED + events


def test_work_that_ends_well_completes_its_job(
    desk: Desk, database: Databases, job_id: int, do: Callable[..., None]
) -> None:
    recorded: list[object] = []
    do(lambda *_: "result", lambda _, result: recorded.append(result))
    assert Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["progress"], job["error_code"]) == ("completed", 1.0, None)
    assert recorded == ["result"]
    assert desk.history(job_id) == [*STARTED, "job_done"]


@pytest.mark.parametrize(
    ("how", "status", "message"),
    [
        (Fail("bad", "It is bad."), "failed", "It is bad."),
        (Retry("busy", "It is busy."), "failed", "It is busy."),
        (Cancelled(), "cancelled", None),
        (Interrupted(), "pending", None),
        (Skip("It is there."), "skipped", "It is there."),
        (LeaseLost(), "running", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_end_of_a_shard_is_one_step(
    database: Databases, item_id: int, do: Callable[..., None],
    how: Exception, status: str, message: str | None,
) -> None:  # fmt: skip
    do(ending(how))
    assert Worker(database.data).runner.work_once()
    with database.control.read() as conn:
        item = Rows(conn).get("job_items", item_id)
    assert (item["status"], item["message"]) == (status, message)
    assert (item["lease_expires_at"] is None) == (status != "running")


def test_a_shard_that_left_files_out_fails_and_says_how_many(
    database: Databases, item_id: int, do: Callable[..., None]
) -> None:
    do(lambda *_: HashResult(left=3))
    assert Worker(database.data).runner.work_once()
    with database.control.read() as conn:
        item = Rows(conn).get("job_items", item_id)
    assert item["status"] == "failed"
    assert item["message"].startswith("3 files were left out")


def test_an_unexpected_error_puts_the_job_back_and_stays_out_of_its_row(
    desk: Desk, database: Databases, job_id: int, do: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    do(crash)
    assert Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["error_code"]) == ("retryable", "internal")
    assert job["error_message"] == "The worker met an unexpected error; see its log."
    assert "secret detail" in caplog.text
    assert desk.history(job_id) == [*STARTED, "job_error"]


def test_an_unexpected_error_fails_the_shard_and_stays_out_of_its_row(
    database: Databases, item_id: int, do: Callable[..., None]
) -> None:
    do(crash)
    assert Worker(database.data).runner.work_once()
    with database.control.read() as conn:
        item = Rows(conn).get("job_items", item_id)
    assert item["status"] == "failed"
    assert item["message"] == "The worker met an unexpected error; see its log."


def test_a_full_disk_puts_the_job_back_and_says_so(
    desk: Desk, database: Databases, job_id: int, do: Callable[..., None]
) -> None:
    do(ending(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    assert Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["error_code"]) == ("retryable", "io_error")
    assert job["error_message"] == "The file system reports: No space left on device."


def test_a_job_with_a_failed_shard_fails_when_the_others_are_done(
    desk: Desk, database: Databases, item_id: int, do: Callable[..., None]
) -> None:
    with database.control.write() as conn:
        job_id = Rows(conn).get("job_items", item_id)["job_id"]
        Rows(conn).add("job_items", job_id=job_id)
    desk.change("UPDATE jobs SET status = 'pending'")

    def fail_first(*_: object) -> HashResult:
        if desk.items(job_id)[0]["status"] == "running":
            raise Fail("bad", "It is bad.")
        return HashResult()

    do(fail_first)
    assert Worker(database.data).runner.work_once()
    assert [item["status"] for item in desk.items(job_id)] == ["failed", "completed"]
    job = desk.job(job_id)
    assert (job["status"], job["error_code"]) == ("failed", "items_failed")


def test_a_result_that_cannot_be_recorded_puts_the_job_back(
    desk: Desk, database: Databases, job_id: int, do: Callable[..., None]
) -> None:
    do(lambda *_: None, crash)
    assert Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["error_code"], job["progress"]) == ("retryable", "internal", 0.0)
    assert desk.history(job_id) == [*STARTED, "job_error"]


def test_an_expired_lease_is_taken_back_by_whoever_claims_next(
    desk: Desk, database: Databases, job_id: int
) -> None:
    desk.change(
        "UPDATE jobs SET status = 'running', worker_id = 'dead', lease_epoch = 1,"
        " lease_expires_at = :past",
        past=LONG_AGO,
    )
    Worker(database.data).runner.work_once()
    job = desk.job(job_id)
    assert (job["status"], job["error_code"]) == ("retryable", "lease_expired")
    assert (job["worker_id"], job["worker_heartbeat_at"], job["lease_expires_at"]) == (None,) * 3
    assert desk.history(job_id) == ["job_added", "job_error"]


def test_an_expired_shard_is_done_by_whoever_claims_next(
    database: Databases, item_id: int, desk: Desk, do: Callable[..., None]
) -> None:
    desk.change(
        "UPDATE job_items SET status = 'running', worker_id = 'dead', lease_epoch = 1,"
        " lease_expires_at = :past",
        past=LONG_AGO,
    )
    do(lambda *_: None)
    assert Worker(database.data, "alive").runner.work_once()
    with database.control.read() as conn:
        item = Rows(conn).get("job_items", item_id)
    assert (item["status"], item["worker_id"], item["lease_epoch"]) == ("completed", "alive", 2)


def test_a_worker_with_nothing_to_do_claims_nothing(database: Databases) -> None:
    assert not Worker(database.data).runner.work_once()


def test_a_kind_without_an_executor_keeps_the_worker_from_starting() -> None:
    registry.check(EXECUTORS)
    missing = EXECUTORS.copy()
    del missing[JobKind.HASH]
    with pytest.raises(RuntimeError, match="hash"):
        registry.check(missing)
    odd = EXECUTORS | {JobKind.DELETE: EXECUTORS[JobKind.SCAN]}
    with pytest.raises(RuntimeError, match="delete"):
        registry.check(odd)
