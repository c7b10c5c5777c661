"""Urgent jobs have slots of their own, which nothing else can take."""

from collections import Counter

import pytest

from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.waiting import eventually

LONG_SECONDS = 3600


def test_an_urgent_job_does_not_wait_for_a_long_one_and_one_below_the_threshold_does(
    desk: Desk, database: Databases
) -> None:
    with Worker(database.data, priority_slots=1):
        long = desk.probe(LONG_SECONDS)
        desk.wait_for(long, "running")
        ordinary = desk.probe(priority=89)
        urgent = desk.probe(priority=90)
        desk.wait_for(urgent, "completed")
        assert desk.job(ordinary)["status"] == "pending"
        assert desk.job(long)["status"] == "running"


def test_without_priority_slots_an_urgent_job_waits_for_a_slot(
    desk: Desk, database: Databases
) -> None:
    with Worker(database.data, priority_slots=0, lease_seconds=1):
        long = desk.probe(LONG_SECONDS)
        desk.wait_for(long, "running")
        urgent = desk.probe(priority=100)
        beaten_at = desk.job(long)["worker_heartbeat_at"]
        # Many looks long, if anybody looked.
        eventually(lambda: desk.job(long)["worker_heartbeat_at"] > beaten_at)
        assert desk.job(urgent)["status"] == "pending"
        desk.cancel(long)
        desk.wait_for(urgent, "completed")


@pytest.mark.parametrize(
    ("priority", "shares"), [(95, {"owner": 1, "helper": 2}), (5, {"owner": 1, "helper": 1})]
)
def test_the_urgent_lane_takes_items_of_urgent_jobs_alone(
    desk: Desk, database: Databases, priority: int, shares: dict[str, int]
) -> None:
    with Worker(database.data, "owner", lease_seconds=1):
        job_id = desk.probe(LONG_SECONDS, probe_items=3, priority=priority)
        eventually(lambda: running(desk, job_id) == {"owner": 1})
        with Worker(database.data, "helper", priority_slots=1, lease_seconds=1):
            eventually(lambda: running(desk, job_id) == shares)
            beaten_at = desk.job(job_id)["worker_heartbeat_at"]
            eventually(lambda: desk.job(job_id)["worker_heartbeat_at"] > beaten_at)
            assert running(desk, job_id) == shares


def running(desk: Desk, job_id: int) -> dict[str, int]:
    """How many items of a job each worker has in hand."""
    items = desk.items(job_id)
    return dict(Counter(item["worker_id"] for item in items if item["status"] == "running"))
