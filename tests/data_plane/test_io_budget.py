"""Workers together read no faster than the budget allows, and one that stops does so at once."""

import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import select

from data_plane.executor import Cancelled, Control
from data_plane.io_budget import HASHING, IoBudget
from mediaplane.protocol.tables import io_rate_limits
from tests.support.databases import Databases

SECOND = 1 << 20  # bytes, at the rate of these tests


def spend(budget: IoBudget, seconds: float) -> None:
    """Read what takes the budget so long, in small parts."""
    for _ in range(int(seconds * 16)):
        budget.spend(Control(), SECOND // 16)


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_a_worker_reads_no_faster_than_its_budget(database: Databases) -> None:
    budget = IoBudget(database.data, HASHING, SECOND)
    # Of what is read last the next pays: a quarter of a second's worth may be on top.
    assert seconds_of(lambda: spend(budget, 2)) >= 1.5


def test_two_workers_share_one_budget(database: Databases) -> None:
    budgets = [IoBudget(database.data, HASHING, SECOND) for _ in range(2)]
    threads = [threading.Thread(target=spend, args=(budget, 1)) for budget in budgets]

    def both() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert seconds_of(both) >= 1.25


def test_without_a_limit_nothing_is_written(database: Databases) -> None:
    spend(IoBudget(database.data, HASHING, 0), 100)
    with database.data.read() as conn:
        assert conn.execute(select(io_rate_limits)).all() == []


def test_a_budget_that_was_not_used_for_long_saves_nothing_up(database: Databases) -> None:
    budget = IoBudget(database.data, HASHING, SECOND)
    spend(budget, 0.25)
    with database.control.write() as conn:
        conn.execute(io_rate_limits.update().values(next_available_at_ms=1))
    assert seconds_of(lambda: spend(budget, 1)) >= 0.5


def test_whoever_waits_for_the_budget_can_be_cancelled(database: Databases) -> None:
    budget, control = IoBudget(database.data, HASHING, SECOND), Control()
    budget.spend(control, 3600 * SECOND)
    control.cancelled.set()
    with pytest.raises(Cancelled):
        budget.spend(control, SECOND)


def test_a_budget_that_cannot_be_used_slows_down_and_fails_nothing(database: Databases) -> None:
    with database.control.write() as conn:
        io_rate_limits.drop(conn)
    budget = IoBudget(database.data, HASHING, SECOND)
    assert seconds_of(lambda: budget.spend(Control(), SECOND)) >= 0.9
