"""Calls of the gate that are mistakes of the caller: refused before the database is asked."""

from collections.abc import Callable

import pytest

from mediaplane.protocol import gate
from mediaplane.protocol.gate import GateRefused, Lessee
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.steps import EPOCH, LEASE_SECONDS, OTHER_WORKER, WORKER, write


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except GateRefused:
        return True
    return False


def test_a_step_taken_the_wrong_way_is_refused_before_the_database_is_asked(
    database: Databases,
) -> None:
    mine = Lessee(1, WORKER, EPOCH)
    with database.data.write(*WRITE_PATHS) as conn:
        assert refused(lambda: gate.take(conn, JOBS, "claim", 1))
        assert refused(lambda: gate.take(conn, JOBS, "complete", 1))
        assert refused(lambda: gate.take(conn, JOBS, "complete", 2, mine))
        assert refused(lambda: gate.take(conn, JOBS, "complete", 1, mine, LEASE_SECONDS))
        assert refused(lambda: gate.take(conn, JOBS, "heartbeat", 1, mine))
        assert refused(lambda: gate.take(conn, JOBS, "recover", 1, mine))
        assert refused(lambda: gate.claim(conn, JOBS, "complete", WORKER, 60, 1))
        assert refused(lambda: gate.take_all(conn, JOBS, "complete", "true"))
    with database.control.write() as conn:
        assert refused(lambda: gate.claim(conn, JOBS, "claim", WORKER, 60, 1))
        assert refused(lambda: gate.heartbeat(conn, JOBS, WORKER, {1: EPOCH}, 60))
        assert refused(lambda: gate.take(conn, JOBS, "exhaust", 1, mine))


@pytest.mark.parametrize("name", ["revoke", "withdraw"])
def test_nobody_asks_for_a_step_that_follows_from_the_end_of_a_job(
    database: Databases, name: str
) -> None:
    mine = Lessee(1, WORKER, EPOCH)
    with write(database, JOB_ITEMS.step(name).plane) as conn:
        assert refused(lambda: gate.take(conn, JOB_ITEMS, name, 1))
        assert refused(lambda: gate.take(conn, JOB_ITEMS, name, 1, mine))
        assert refused(lambda: gate.take_all(conn, JOB_ITEMS, name, "true"))
        assert refused(lambda: gate.finish(conn, JOB_ITEMS, name, [(mine, {})]))
        assert refused(lambda: gate.claim(conn, JOB_ITEMS, name, WORKER, 60, 1))


def test_the_leases_of_two_workers_are_not_ended_by_one_call(database: Databases) -> None:
    ended: list[tuple[Lessee, dict[str, str]]] = [
        (Lessee(1, WORKER, EPOCH), {}),
        (Lessee(2, OTHER_WORKER, EPOCH), {}),
    ]
    with (
        database.data.write(*WRITE_PATHS) as conn,
        pytest.raises(GateRefused, match="one worker at a time"),
    ):
        gate.finish(conn, JOB_ITEMS, "complete", ended)


def test_only_a_step_that_ends_a_lease_ends_many(database: Databases) -> None:
    with database.data.write(*WRITE_PATHS) as conn:
        for name in ("heartbeat", "claim", "recover"):
            with pytest.raises(GateRefused, match="does not end a lease"):
                gate.finish(conn, JOBS, name, [(Lessee(1, WORKER, EPOCH), {})])


def test_a_column_that_only_a_later_row_brings_is_refused_too(database: Databases) -> None:
    first, second = Lessee(1, WORKER, EPOCH), Lessee(2, WORKER, EPOCH)
    with (
        database.data.write(*WRITE_PATHS) as conn,
        pytest.raises(GateRefused, match="may not write"),
    ):
        gate.finish(conn, JOBS, "fail", [(first, {"error_code": "io"}), (second, {"attempts": 0})])
