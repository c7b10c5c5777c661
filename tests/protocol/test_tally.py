"""Steps are counted where they are taken, by machine and kind, once they are committed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from control_plane.policy import recovery
from control_plane.policy.backoff import Backoff
from mediaplane.counters import Counter, Labels
from mediaplane.protocol import gate
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.machines import JOBS, MAX_ITEM_CLAIMS
from mediaplane.protocol.tally import TALLIES
from mediaplane.protocol.values import Plane
from mediaplane.protocol.write_paths import paths_of
from tests.support import worker
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows

OF_CONTROL, OF_DATA = TALLIES[Plane.CONTROL], TALLIES[Plane.DATA]
BEAT = paths_of(JOBS, "heartbeat")
LAPSED = {"status": "running", "worker_id": "gone", "lease_expires_at": LONG_AGO}


@contextmanager
def counted(counter: Counter) -> Iterator[dict[Labels, float]]:
    """What is added to a counter meanwhile; known when the block has ended."""
    before = counter.figures()
    added: dict[Labels, float] = {}
    yield added
    rise = {labels: now - before.get(labels, 0) for labels, now in counter.figures().items()}
    added.update({labels: by for labels, by in rise.items() if by})


def add(database: Databases, table: str, **columns: object) -> int:
    with database.control.write() as conn:
        return int(Rows(conn).add(table, **columns))


def test_a_claim_and_its_end_are_counted_with_the_kind_of_the_job(database: Databases) -> None:
    add(database, "jobs", kind="verify", total_items=0)
    with counted(OF_DATA.steps) as added:
        job = worker.claim(database.data)
        assert worker.finish(database.data, job)
    assert added == {("jobs", "verify", "claim"): 1, ("jobs", "verify", "complete"): 1}


def test_a_step_that_is_rolled_back_is_not_counted(database: Databases) -> None:
    job = add(database, "jobs", kind="verify")
    with counted(OF_CONTROL.steps) as added:
        with suppress(RuntimeError), database.control.write() as conn:
            assert gate.take(conn, JOBS, "cancel_waiting", job)
            raise RuntimeError
        with database.control.write() as conn:
            assert gate.take(conn, JOBS, "cancel_waiting", job)
    assert added == {("jobs", "verify", "cancel_waiting"): 1}


def test_the_items_that_end_with_their_job_are_counted(database: Databases) -> None:
    job = add(database, "jobs", kind="verify", total_items=2)
    for _ in range(2):
        add(database, "job_items", job_id=job)
    with counted(OF_CONTROL.steps) as added, database.control.write() as conn:
        assert gate.take(conn, JOBS, "cancel_waiting", job)
    assert added == {("jobs", "verify", "cancel_waiting"): 1, ("job_items", "", "withdraw"): 2}


def test_a_finish_without_the_lease_is_a_stale_write(database: Databases) -> None:
    add(database, "jobs")
    job = worker.claim(database.data)
    with counted(OF_DATA.stale_writes) as stale, counted(OF_DATA.steps) as moved:
        assert not worker.finish(database.data, dict(job) | {"lease_epoch": 0})
        assert worker.finish(database.data, job)
        assert not worker.finish(database.data, job)
    assert stale == {("jobs",): 2}
    assert moved == {("jobs", "delete", "complete"): 1}


def test_a_heartbeat_of_what_has_just_ended_is_no_stale_write(database: Databases) -> None:
    add(database, "jobs")
    job = worker.claim(database.data)
    assert worker.finish(database.data, job)
    with counted(OF_DATA.stale_writes) as stale, database.data.write(*BEAT) as conn:
        lease = Lessee(job["id"], worker.WORKER, job["lease_epoch"])
        assert not gate.take(conn, JOBS, "heartbeat", job["id"], lease, lease_seconds=60)
    assert stale == {}


def test_a_lease_that_expires_is_counted_and_so_is_the_row_that_is_put_back(
    database: Databases,
) -> None:
    add(database, "jobs", **LAPSED)
    with counted(OF_CONTROL.expiries) as expired, counted(OF_CONTROL.recoveries) as recovered:
        recovery.recover(database.control, Backoff())
    assert expired == recovered == {("jobs",): 1}


def test_a_row_that_is_given_up_is_not_put_back(database: Databases) -> None:
    add(database, "job_items", lease_epoch=MAX_ITEM_CLAIMS, **LAPSED)
    with counted(OF_CONTROL.expiries) as expired, counted(OF_CONTROL.recoveries) as recovered:
        recovery.recover(database.control, Backoff())
    assert expired["job_items",] == 1
    assert ("job_items",) not in recovered
