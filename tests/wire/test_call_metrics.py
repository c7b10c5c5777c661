"""Calls are counted by method and code, and what is no work is not counted."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from control_plane.feed import Feed
from control_plane.server import services
from control_plane.settings import ControlSettings
from mediaplane.calls import MAX_CODES, CallMeter
from mediaplane.client import Client, open_channel
from mediaplane.protocol.bell import Bell
from mediaplane.serving import build_server
from mediaplane.v1 import job_service_pb2 as jobs_v1
from tests.support.databases import Databases
from tests.support.waiting import PATIENCE_SECONDS, eventually

JOBS = "mediaplane.v1.JobService"


class Metered:
    """A control plane whose calls are measured."""

    def __init__(self, address: str, meter: CallMeter) -> None:
        self.address = address
        self.meter = meter

    def handled(self) -> dict[tuple[str, str], float]:
        """The calls that have ended, by method and code."""
        figures = self.meter.handled.figures()
        return {(name, code): calls for (_, name, code), calls in figures.items() if calls}


@contextmanager
def metering(database: Databases, directory: Path, calls: int, streams: int) -> Iterator[Metered]:
    meter, address = CallMeter(), f"unix:{directory / 'control.sock'}"
    feed = Feed(database.control, Bell(database.control, None), 0.05)
    offered = services(database.control, feed, ControlSettings())
    server, _ = build_server(address, offered, calls=calls, streams=streams, meter=meter)
    feed.start()
    server.start()
    yield Metered(address, meter)
    feed.stop()
    server.stop(5).wait()


@pytest.fixture
def metered(database: Databases, tmp_path: Path) -> Iterator[Metered]:
    with metering(database, tmp_path, calls=4, streams=4) as metered:
        yield metered


def test_calls_are_counted_by_method_and_code(metered: Metered) -> None:
    with Client(metered.address) as client:
        client.job_service.ListJobs(jobs_v1.ListJobsRequest())
        with pytest.raises(grpc.RpcError):
            client.job_service.GetJob(jobs_v1.GetJobRequest(name="jobs/7"))
        with pytest.raises(grpc.RpcError):
            client.job_service.GetJob(jobs_v1.GetJobRequest(name="nonsense"))
    eventually(lambda: len(metered.handled()) == 3)
    assert metered.handled() == {
        ("ListJobs", "OK"): 1,
        ("GetJob", "NOT_FOUND"): 1,
        ("GetJob", "INVALID_ARGUMENT"): 1,
    }
    timed = metered.meter.latency.distributions()
    assert {labels: sum(one.counts) for labels, one in timed.items()} == {
        (JOBS, "ListJobs"): 1,
        (JOBS, "GetJob"): 2,
    }


def test_a_stream_is_counted_when_it_ends_and_has_no_duration(metered: Metered) -> None:
    job = jobs_v1.Job(kind=jobs_v1.JOB_KIND_PROBE)
    with Client(metered.address) as client:
        client.job_service.CreateJob(jobs_v1.CreateJobRequest(job=job))
        request = jobs_v1.WatchJobsRequest(after_event_id=0)
        stream = client.job_service.WatchJobs(request, timeout=PATIENCE_SECONDS)
        next(iter(stream))
        assert metered.handled() == {("CreateJob", "OK"): 1}
        stream.cancel()
        eventually(lambda: len(metered.handled()) == 2)
    assert metered.handled()["WatchJobs", "CANCELLED"] == 1
    assert metered.meter.latency.distributions().keys() == {(JOBS, "CreateJob")}


def test_a_call_for_which_there_is_no_place_is_counted_too(
    database: Databases, tmp_path: Path
) -> None:
    with metering(database, tmp_path, 1, 1) as metered, ExitStack() as stack:
        # As many as are taken on, and more: each by a connection of its own, which has limits too.
        for _ in range(6):
            client = stack.enter_context(Client(metered.address))
            stream = client.job_service.WatchJobs(jobs_v1.WatchJobsRequest())
            stack.callback(stream.cancel)
        eventually(lambda: ("WatchJobs", "RESOURCE_EXHAUSTED") in metered.handled())


def test_health_checks_and_unknown_methods_are_not_counted(metered: Metered) -> None:
    with open_channel(metered.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        health.Check(health_pb2.HealthCheckRequest())
        for path in (f"/{JOBS}/Invented", "/odd"):
            invented: Any = channel.unary_unary(path)
            with pytest.raises(grpc.RpcError):
                invented(b"")
    assert metered.handled() == {}


def test_every_method_is_there_before_its_first_call(metered: Metered) -> None:
    figures = metered.meter.handled.figures()
    assert figures[JOBS, "CreateJob", "OK"] == 0


def test_the_codes_of_a_method_are_bounded() -> None:
    meter = CallMeter()
    meter.cover([JOBS])
    for code in grpc.StatusCode:
        meter.note((JOBS, "GetJob"), code.name)
    seen = {code for _, name, code in meter.handled.figures() if name == "GetJob"}
    assert len(seen) == MAX_CODES
    assert {"OK", "OTHER"} <= seen
