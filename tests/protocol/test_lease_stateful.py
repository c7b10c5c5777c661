"""Random lives of jobs and items at the real gate, each call foretold by expected_rows.py."""

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, select, text

from mediaplane.protocol import gate, history, statements
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Lease, Machine, Step
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.tables import events, job_items, jobs
from mediaplane.protocol.values import EventType
from tests.protocol.expected_rows import MAX_ATTEMPTS, OPEN, Row, is_legal, seen, take
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows
from tests.support.steps import LEASE_SECONDS, write

EXAMPLES = 80
BY_NAME = {"jobs": JOBS, "job_items": JOB_ITEMS}


# By their names, so that a failure prints as a story.
STEPS = {
    f"{machine.name}.{step.name}": (machine, step)
    for machine in BY_NAME.values()
    for step in machine.steps
}


def names(*leases: Lease) -> st.SearchStrategy[str]:
    """The steps of both machines that do this to the lease."""
    return st.sampled_from([name for name, (_, step) in STEPS.items() if step.lease in leases])


# A worker id stands for every process that ever bore it.
workers = st.sampled_from(["worker-1", "worker-1", "worker-2"])
picks = st.lists(st.integers(0, 7), min_size=1, max_size=3)


class Claim(NamedTuple):
    """What some process remembers, whatever has become of it."""

    machine: Machine
    worker: str
    row_id: int
    epoch: int


class Lives(RuleBasedStateMachine):
    """Jobs and items in the hands of workers that stall, come back and take each other's names."""

    database: Databases
    stale_calls = 0  # by the worker id that holds the row, with the epoch of a claim before

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, dict[int, Row]] = {"jobs": {}, "job_items": {}}
        self.claims: list[Claim] = []
        self.ended: dict[tuple[str, int], dict[str, Any]] = {}
        with self.database.control.write() as conn:
            for table in (events, job_items, jobs):
                conn.execute(delete(table))

    @initialize(weights=st.lists(st.integers(0, 3), max_size=3))
    def begin(self, weights: list[int]) -> None:
        self.enqueue(weights)
        self.claim("jobs.claim", "worker-1", 1)
        self.claim("job_items.claim", "worker-1", 1)

    @precondition(lambda self: sum(row.status in OPEN for row in self.rows["jobs"].values()) < 3)
    @rule(weights=st.lists(st.integers(0, 3), max_size=3))
    def enqueue(self, weights: list[int]) -> None:
        with self.database.control.write() as conn:
            rows = Rows(conn)
            job = Row(rows.add("jobs", max_attempts=MAX_ATTEMPTS, created_at=LONG_AGO,
                               total_items=sum(weights), progress_at=FAR_AHEAD))  # fmt: skip
            for epoch, weight in enumerate(weights):
                # The last of them has been claimed so often that it is given up soon.
                item = {"job_id": job.id, "total_items": weight, "lease_epoch": 2 * epoch}
                row = Row(rows.add("job_items", **item), job, weight=weight, epoch=2 * epoch)
                job.items.append(row)
                self.rows["job_items"][row.id] = row
            history.append(conn, EventType.JOB_ADDED, [job.id])
        job.history.append(("job_added", None))
        self.rows["jobs"][job.id] = job

    @rule(name=names(Lease.TAKE), worker=workers, limit=st.integers(1, 3))
    def claim(self, name: str, worker: str, limit: int) -> None:
        machine, step = STEPS[name]
        rows = self.rows[machine.name]
        order = sorted(rows.values(), key=lambda row: (row.job.id if row.job else 0, row.id))
        expected = [row for row in order if is_legal(machine, step, row)][:limit]
        with write(self.database, step.plane) as conn:
            claimed = gate.claim(conn, machine, step.name, worker, LEASE_SECONDS, limit)
        assert [row["id"] for row in claimed] == [row.id for row in expected]
        take(machine, step, expected, worker)
        self.claims += [Claim(machine, worker, row["id"], row["lease_epoch"]) for row in claimed]

    @precondition(lambda self: self.claims)
    @rule(name=names(Lease.DROP), picks=picks)
    def finish(self, name: str, picks: list[int]) -> None:
        machine, step = STEPS[name]
        lessees = self.remembered(machine, picks)
        expected = self.held(machine, step, lessees)
        with write(self.database, step.plane) as conn:
            ended = gate.finish(conn, machine, step.name, [(lessee, {}) for lessee in lessees])
        assert ended == expected.keys()
        take(machine, step, expected.values())

    @precondition(lambda self: self.claims)
    @rule(name=names(Lease.KEEP), picks=picks, has_figures=st.booleans())
    def heartbeat(self, name: str, picks: list[int], has_figures: bool) -> None:
        machine, step = STEPS[name]
        by_row = {lessee.row_id: lessee for lessee in self.remembered(machine, picks)}
        lessees = list(by_row.values())
        leases = {lessee.row_id: lessee.epoch for lessee in lessees}
        expected = self.held(machine, step, lessees)
        figures = {row_id: {"processed_items": 1} for row_id in leases} if has_figures else None
        with write(self.database, step.plane) as conn:
            worker = lessees[0].worker_id if lessees else "worker-1"
            kept = gate.heartbeat(conn, machine, worker, leases, LEASE_SECONDS, figures)
        assert kept.keys() == expected.keys()
        take(machine, step, expected.values())

    @rule(table=st.sampled_from(sorted(BY_NAME)), pick=st.integers(0, 7))
    def expire(self, table: str, pick: int) -> None:
        valid = [row for row in self.rows[table].values() if row.lease == "valid"]
        for row in valid[pick % len(valid) :][:1] if valid else []:
            with self.database.control.write() as conn:
                conn.execute(
                    text(f"UPDATE {table} SET lease_expires_at = :at WHERE id = :id"),
                    {"at": LONG_AGO, "id": row.id},
                )
            row.lease = "expired"

    @rule(name=names(Lease.REAP))
    def sweep(self, name: str) -> None:
        machine, step = STEPS[name]
        expected = [row for row in self.rows[machine.name].values() if is_legal(machine, step, row)]
        with write(self.database, step.plane) as conn:
            swept = gate.take_all(conn, machine, step.name, "true")
        assert {row["id"] for row in swept} == {row.id for row in expected}
        take(machine, step, expected)

    @rule(name=names(Lease.ABSENT), pick=st.integers(0, 7))
    def decide(self, name: str, pick: int) -> None:
        machine, step = STEPS[name]
        rows = list(self.rows[machine.name].values())
        for row in [rows[pick % len(rows)]] if rows else []:
            values: dict[str, Any] = {}
            if step.name == "request_cancel":
                values = {"cancel_requested_at": LONG_AGO}
            elif step.name == "delay":
                values = {"retry_after": LONG_AGO}
            with write(self.database, step.plane) as conn:
                taken = gate.take(conn, machine, step.name, row.id, **values)
            assert taken is is_legal(machine, step, row)
            if taken:
                take(machine, step, [row])

    @rule(table=st.sampled_from(sorted(BY_NAME)), worker=workers, pick=st.integers(0, 7))
    def lose_and_claim_again(self, table: str, worker: str, pick: int) -> None:
        """What happens behind the back of a worker that stalls: by chance it is too rare."""
        self.expire(table, pick)
        self.sweep(f"{table}.reap")
        for number in range(len(self.rows["jobs"])):
            self.decide("jobs.requeue_now", number)
        self.claim(f"{table}.claim", worker, 3)

    def remembered(self, machine: Machine, picks: list[int]) -> list[Lessee]:
        """Claims of one worker id, however old."""
        known = [claim for claim in self.claims if claim.machine is machine]
        # First those of which somebody holds the row, for they can go wrong.
        known.sort(key=lambda claim: self.rows[machine.name][claim.row_id].lease is None)
        chosen = dict.fromkeys(known[pick % len(known)] for pick in picks if known)
        lessees = [Lessee(claim.row_id, claim.worker, claim.epoch) for claim in chosen]
        return [one for one in lessees if one.worker_id == lessees[0].worker_id]

    def held(self, machine: Machine, step: Step, lessees: list[Lessee]) -> dict[int, Row]:
        """The rows that are in truth held by these claims and may take the step."""
        held = {}
        for lessee in lessees:
            row = self.rows[machine.name][lessee.row_id]
            is_owner = (row.worker, row.epoch) == (lessee.worker_id, lessee.epoch)
            if is_owner and is_legal(machine, step, row):
                held[row.id] = row
            if row.worker == lessee.worker_id and row.epoch > lessee.epoch and row.lease:
                type(self).stale_calls += 1
        return held

    @invariant()
    def rows_are_as_foretold(self) -> None:
        with self.database.control.read() as conn:
            for table in (jobs, job_items):
                found = {row["id"]: dict(row) for row in conn.execute(select(table)).mappings()}
                expected = {row.id: seen(row) for row in self.rows[table.name].values()}
                for row in found.values():
                    row["lease"] = lease_of(row)
                assert {
                    row_id: {column: row[column] for column in expected[row_id]}
                    for row_id, row in found.items()
                } == expected
                self.check_ends(table.name, found)
            told: dict[int, list[tuple[str, int | None]]] = {}
            for event in conn.execute(select(events).order_by(events.c.id)).mappings():
                told.setdefault(event["job_id"], []).append(
                    (event["type"], event["payload"].get("item"))
                )
        assert told == {row.id: row.history for row in self.rows["jobs"].values()}

    def check_ends(self, table: str, found: dict[int, dict[str, Any]]) -> None:
        """A row that has ended is never written again, in no column."""
        for row_id, row in found.items():
            assert self.ended.get((table, row_id), row) == row
            if row["status"] in BY_NAME[table].final:
                self.ended[table, row_id] = row
                if table == "jobs":
                    ended = ("completed_items", "failed_items", "cancelled_items")
                    assert sum(row[counter] for counter in ended) == row["total_items"]


def lease_of(row: dict[str, Any]) -> str | None:
    expires_at = row["lease_expires_at"]
    if expires_at is None:
        return None
    return "expired" if expires_at == LONG_AGO else "valid"


def live(database: Databases, chosen: settings) -> int:
    """Run random lives on a database; tell how often a lost claim tried to get in."""

    class LivesHere(Lives):
        pass

    LivesHere.database = database
    run_state_machine_as_test(LivesHere, settings=chosen)
    return LivesHere.stale_calls


LIVES = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_every_call_is_taken_exactly_where_the_model_says_so(database: Databases) -> None:
    assert live(database, LIVES) > 0, "no lost claim came back"


def test_without_the_fence_a_life_goes_wrong(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_the_same = settings(
        LIVES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    monkeypatch.setattr(statements, "FENCE", "{epoch} = {epoch}")
    statements.owners_update.cache_clear()
    try:
        with pytest.raises(AssertionError):
            live(database, always_the_same)
    finally:
        statements.owners_update.cache_clear()
