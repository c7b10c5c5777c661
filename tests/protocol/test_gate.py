"""Every step of every machine, tried from every status, in every circumstance, on both planes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Boolean, Float, Numeric, String

from mediaplane.protocol.gate import GateRefused, Lessee
from mediaplane.protocol.lifecycle import OWNER, Lease, Machine, Step
from mediaplane.protocol.machines import JOBS, MACHINES
from mediaplane.protocol.values import Plane
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows
from tests.support.steps import (
    CONDITIONS,
    EPOCH,
    LEASE_SECONDS,
    OTHER_WORKER,
    WORKER,
    add_row,
    attempt,
    favourable,
    history_of,
    write,
)

machines = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)

# What the gate writes by itself: never a value that a caller brings along.
MANAGED = OWNER | {"status", "lease_epoch", "updated_at", "started_at", "finished_at"}


class Case(NamedTuple):
    """A row in some circumstances, and whether a step of it is legal there."""

    step: Step
    columns: dict[str, Any]
    is_legal: bool
    lessee: tuple[str, int] = (WORKER, EPOCH)


def outcome(
    database: Databases, machine: Machine, cases: list[Case]
) -> Iterator[tuple[Case, bool, dict[str, Any], dict[str, Any]]]:
    """Yield each case with whether its step was taken, and the row before and after."""
    with database.control.write() as conn:
        rows = Rows(conn)
        ids = [add_row(rows, machine, **case.columns) for case in cases]
        before = [rows.get(machine.name, row_id) for row_id in ids]
    taken: dict[int, bool] = {}
    for plane in Plane:
        with write(database, plane) as conn:
            for row_id, case in zip(ids, cases, strict=True):
                if case.step.plane is plane:
                    lessee = Lessee(row_id, *case.lessee) if holds(case.step) else None
                    taken[row_id] = attempt(conn, machine, case.step, row_id, lessee)
    with database.control.read() as conn:
        after = [Rows(conn).get(machine.name, row_id) for row_id in ids]
    yield from zip(cases, [taken[row_id] for row_id in ids], before, after, strict=True)


def holds(step: Step) -> bool:
    return step.lease in (Lease.KEEP, Lease.DROP)


def by_call(machine: Machine) -> list[Step]:
    """The steps that somebody asks for; the others follow from the end of a job."""
    return [step for step in machine.steps if step.lease is not Lease.REVOKE]


def assert_only_legal_steps_are_taken(
    database: Databases, machine: Machine, cases: list[Case]
) -> None:
    assert {case.is_legal for case in cases} == {True, False}, "the cases prove nothing"
    wrong = []
    for case, was_taken, before, after in outcome(database, machine, cases):
        if was_taken != case.is_legal or (not was_taken and before != after):
            wrong.append((case.step.name, case.columns, was_taken))
    assert wrong == []


@machines
def test_a_step_is_legal_from_its_sources_and_from_no_other_status(
    database: Databases, machine: Machine
) -> None:
    cases = [
        Case(step, favourable(machine, step) | {"status": status}, status in step.sources)
        for step in machine.steps
        for status in machine.statuses
    ]
    assert_only_legal_steps_are_taken(database, machine, cases)


@machines
def test_a_step_waits_for_its_time_and_its_condition(database: Databases, machine: Machine) -> None:
    cases = []
    for step in machine.steps:
        legal, illegal = CONDITIONS.get(f"{machine.name}.{step.name}", ([], []))
        for is_legal, circumstances in ((True, legal), (False, illegal)):
            cases += [
                Case(step, favourable(machine, step) | columns | {"status": source}, is_legal)
                for columns in circumstances
                for source in step.sources
            ]
    assert_only_legal_steps_are_taken(database, machine, cases)


def test_every_condition_of_a_step_is_tried() -> None:
    conditional = {
        f"{machine.name}.{step.name}"
        for machine in MACHINES
        for step in machine.steps
        if step.due or step.when
    }
    assert conditional == CONDITIONS.keys()


@machines
def test_only_the_owner_of_the_newest_claim_keeps_or_ends_a_lease(
    database: Databases, machine: Machine
) -> None:
    lessees = {
        (WORKER, EPOCH): True,
        (OTHER_WORKER, EPOCH): False,
        (WORKER, EPOCH - 1): False,
        (WORKER, EPOCH + 1): False,
    }
    cases = []
    for step in filter(holds, machine.steps):
        for status in step.sources:
            row = favourable(machine, step) | {"status": status}
            cases += [Case(step, row, legal, lessee) for lessee, legal in lessees.items()]
            # Late, but nobody took it away: the work is still this worker's.
            cases.append(Case(step, row | {"lease_expires_at": LONG_AGO}, True))
            cases.append(Case(step, row | {"worker_id": None}, False))
    assert_only_legal_steps_are_taken(database, machine, cases)


@machines
def test_a_lease_is_taken_away_only_when_it_expired_or_is_missing(
    database: Databases, machine: Machine
) -> None:
    with database.control.read() as conn:
        now = Rows(conn).now()
    cases = []
    for step in machine.steps:
        if step.lease is Lease.REAP:
            row = favourable(machine, step) | {"status": step.sources[0]}
            times = {LONG_AGO: True, now: True, None: True, now + 60_000: False, FAR_AHEAD: False}
            cases += [
                Case(step, row | {"lease_expires_at": time}, is_legal)
                for time, is_legal in times.items()
            ]
    assert_only_legal_steps_are_taken(database, machine, cases)


@machines
def test_a_step_does_to_the_row_what_it_says(database: Databases, machine: Machine) -> None:
    with database.control.read() as conn:
        earliest = Rows(conn).now()
    cases = [
        Case(step, favourable(machine, step) | {"status": status}, True)
        for step in machine.steps
        for status in step.sources
    ]
    for case, was_taken, before, after in outcome(database, machine, cases):
        step = case.step
        assert was_taken
        assert after["status"] == (step.target or before["status"])
        assert earliest <= after["updated_at"]
        changed = {column for column in after if after[column] != before[column]}
        assert changed <= step.writes, step.name
        assert_lease(step, before, after)
        for column in step.increments:
            assert after[column] == before[column] + 1
        for column, value in step.sets.items():
            assert after[column] == value
        if step.target in machine.final and "finished_at" in step.writes:
            assert after["finished_at"] == after["updated_at"]


def assert_lease(step: Step, before: dict[str, Any], after: dict[str, Any]) -> None:
    raised = 1 if step.lease is Lease.TAKE else 0
    assert after["lease_epoch"] == before["lease_epoch"] + raised
    match step.lease:
        case Lease.TAKE | Lease.KEEP:
            assert after["worker_id"] == WORKER
            assert after["worker_heartbeat_at"] == after["updated_at"]
            lasts = after["lease_expires_at"] - after["worker_heartbeat_at"]
            assert lasts == LEASE_SECONDS * 1000
        case Lease.DROP:
            assert after["lease_expires_at"] is None
            assert after["worker_id"] == (None if step.name.startswith("release") else WORKER)
        case Lease.REAP | Lease.REVOKE:
            assert {after[column] for column in OWNER} == {None}
        case Lease.ABSENT:
            assert {after[column] == before[column] for column in OWNER} == {True}


@machines
def test_no_plane_takes_a_step_of_the_other(database: Databases, machine: Machine) -> None:
    for plane in Plane:
        with write(database, plane) as conn:
            for step in (step for step in by_call(machine) if step.plane is not plane):
                with pytest.raises(GateRefused, match=f"a step of the {step.plane} plane"):
                    attempt(conn, machine, step, 1)


@machines
def test_a_caller_writes_the_columns_of_the_step_and_none_that_the_gate_decides(
    database: Databases, machine: Machine
) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        ids = {
            step.name: add_row(rows, machine, **favourable(machine, step), status=step.sources[0])
            for step in by_call(machine)
        }
    for plane in Plane:
        with write(database, plane) as conn:
            for step in (
                s for s in by_call(machine) if s.plane is plane and s.lease is not Lease.TAKE
            ):
                free = step.writes - MANAGED - {*step.increments, *step.sets}
                for column in set(machine.table.columns.keys()) - free:
                    with pytest.raises(GateRefused, match="may not write"):
                        attempt(conn, machine, step, ids[step.name], values={column: 1})
                values = {column: sample(machine, column) for column in free}
                assert attempt(conn, machine, step, ids[step.name], values=values)
                row = Rows(conn).get(machine.name, ids[step.name])
                assert {column: row[column] for column in free} == values


def sample(machine: Machine, column: str) -> str | float | int:
    kind = machine.table.columns[column].type
    if isinstance(kind, String):
        return "words"
    if isinstance(kind, Boolean):
        return True
    return 0.5 if isinstance(kind, (Float, Numeric)) else 7


def test_a_step_of_a_job_appends_its_events_in_order_and_a_refused_one_none(
    database: Databases,
) -> None:
    cases = [
        Case(step, favourable(JOBS, step) | {"status": status}, status in step.sources)
        for step in JOBS.steps
        for status in JOBS.statuses
    ]
    for case, was_taken, before, _after in outcome(database, JOBS, cases):
        with database.control.read() as conn:
            told = tuple(event for event, _payload in history_of(conn, before["id"]))
            assert told == (case.step.events if was_taken else ())
