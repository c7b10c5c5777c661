"""A worker is told what to do by one conditional write, whose time tells it from the last."""

from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import select, text

from mediaplane.protocol.clock import database_time
from mediaplane.protocol.tables import worker_status
from mediaplane.v1 import worker_service_pb2 as pb
from tests.support.control import ControlPlane, Refusal, at_once, refusal
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows

WORKER = "myhost-3f2a9c0d1e2b"
COMMANDS = ["pause", "resume", "shutdown", "forensic_dump"]


@pytest.fixture
def rows(control: ControlPlane) -> list[str]:
    """One worker that runs, one that is another's business, one that has gone."""
    states = {WORKER: "processing", "other-000000000000": "idle", "gone-000000000000": "offline"}
    with control.database.control.write() as conn:
        for worker_id, state in states.items():
            Rows(conn).add("worker_status", worker_id=worker_id, state=state, last_seen_at=LONG_AGO)
    return list(states)


def stored(database: Databases, worker_id: str = WORKER) -> dict[str, Any]:
    with database.control.read() as conn:
        query = select(worker_status).where(worker_status.c.worker_id == worker_id)
        return dict(conn.execute(query).mappings().one())


def refused(control: ControlPlane, name: str, command: int) -> Refusal:
    request = pb.CommandWorkerRequest(name=name)
    request.command = command  # type: ignore[assignment]
    return refusal(control.client.worker_service.CommandWorker, request)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_stored_with_the_time_of_the_database_and_returned(
    control: ControlPlane, rows: list[str], command: str
) -> None:
    with control.database.control.read() as conn:
        before = database_time(conn)
    told = control.client.command_worker(WORKER, command)
    with control.database.control.read() as conn:
        after = database_time(conn)
    row = stored(control.database)
    assert row["command"] == command
    assert before <= row["commanded_at"] <= after
    assert told.command == pb.Worker.Command.Value(f"COMMAND_{command.upper()}")
    assert told.command_time.ToMilliseconds() == row["commanded_at"]
    assert told in list(control.client.workers())


def test_a_command_changes_nothing_else_and_nobody_else(
    control: ControlPlane, rows: list[str]
) -> None:
    before = {name: stored(control.database, name) for name in rows}
    control.client.command_worker(WORKER, "pause")
    after = {name: stored(control.database, name) for name in rows}
    before[WORKER] |= {"command": "pause", "commanded_at": after[WORKER]["commanded_at"]}
    assert after == before


def test_a_worker_that_was_never_told_anything_has_no_command_time(
    control: ControlPlane, rows: list[str]
) -> None:
    assert not any(worker.HasField("command_time") for worker in control.client.workers())


def test_the_same_command_again_has_a_later_time_even_when_the_clock_was_set_back(
    control: ControlPlane, rows: list[str]
) -> None:
    with control.database.control.write() as conn:
        changed = conn.execute(
            text("UPDATE worker_status SET command = 'forensic_dump', commanded_at = :ahead"),
            {"ahead": FAR_AHEAD},
        )
        assert changed.rowcount == len(rows)
    for step in (1, 2):
        control.client.command_worker(WORKER, "forensic_dump")
        assert stored(control.database)["commanded_at"] == FAR_AHEAD + step


def test_commands_at_the_same_moment_have_times_of_their_own(
    control: ControlPlane, rows: list[str]
) -> None:
    calls = [lambda: control.client.command_worker(WORKER, "forensic_dump")] * 8
    told, refusals = at_once(*calls)
    assert not refusals
    times = {worker.command_time.ToMilliseconds() for worker in told}
    assert len(times) == len(calls)
    assert stored(control.database)["commanded_at"] == max(times)


def test_a_worker_that_does_not_exist_is_not_found(control: ControlPlane, rows: list[str]) -> None:
    told = refused(control, "workers/nobody-000000000000", pb.Worker.COMMAND_PAUSE)
    assert told.code is StatusCode.NOT_FOUND
    assert "nobody-000000000000" in told.text
    assert "mediaplane worker list" in told.text


def test_a_worker_that_is_offline_is_told_nothing(control: ControlPlane, rows: list[str]) -> None:
    told = refused(control, "workers/gone-000000000000", pb.Worker.COMMAND_SHUTDOWN)
    assert told.code is StatusCode.FAILED_PRECONDITION
    assert "gone-000000000000 is offline" in told.text
    row = stored(control.database, "gone-000000000000")
    assert (row["command"], row["commanded_at"]) == ("none", None)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (f"workers/{WORKER}", pb.Worker.COMMAND_UNSPECIFIED),
        (f"workers/{WORKER}", pb.Worker.COMMAND_NONE),
        (f"workers/{WORKER}", 4242),
        (WORKER, pb.Worker.COMMAND_PAUSE),
        ("workers/", pb.Worker.COMMAND_PAUSE),
        (f"workers/{WORKER}/jobs", pb.Worker.COMMAND_PAUSE),
        (f"workers/{WORKER}\0", pb.Worker.COMMAND_PAUSE),
        ("", pb.Worker.COMMAND_PAUSE),
    ],
)
def test_what_is_no_name_or_no_command_is_an_invalid_argument(
    control: ControlPlane, rows: list[str], name: str, command: int
) -> None:
    assert refused(control, name, command).code is StatusCode.INVALID_ARGUMENT
    assert stored(control.database)["commanded_at"] is None


def test_any_worker_that_is_listed_can_be_told(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        for worker_id in ("host:9", "höst ✓", "'; --", "x" * 128):
            Rows(conn).add("worker_status", worker_id=worker_id)
    for worker in control.client.workers():
        assert control.client.command_worker(worker.name, "pause").name == worker.name
