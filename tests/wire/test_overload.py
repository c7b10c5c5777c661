"""A server with more calls than it can take says so at once, and still tells how it is."""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mediaplane.calls import CallMeter
from mediaplane.client import open_channel
from mediaplane.serving import Service, build_server
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1.job_service_pb2_grpc import JobServiceStub
from tests.support.control import refusal, serving_control
from tests.support.databases import Databases
from tests.support.waiting import PATIENCE_SECONDS, eventually

GET = jobs_v1.GetJobRequest(name="jobs/1")
CALLS, STREAMS = 2, 2
THREADS = CALLS + STREAMS
# Those that run, and as many again that wait for a thread.
PLACES = 2 * THREADS
FLOOD_SECONDS = os.environ.get("MEDIAPLANE_FLOOD_SECONDS", "1")


class Busy:
    """A server whose calls last until they are let go."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.let_go = threading.Event()
        self._lock = threading.Lock()
        self.running = 0

    def service(self) -> Service:
        def get(_request: Any, _context: Any) -> Any:
            with self._lock:
                self.running += 1
            assert self.let_go.wait(2 * PATIENCE_SECONDS)
            with self._lock:
                self.running -= 1
            return jobs_v1.Job(name="jobs/1")

        def watch(_request: Any, _context: Any) -> Iterator[Any]:
            yield from ()

        handlers: dict[str, Any] = {
            "GetJob": grpc.unary_unary_rpc_method_handler(
                get, jobs_v1.GetJobRequest.FromString, jobs_v1.Job.SerializeToString
            ),
            "WatchJobs": grpc.unary_stream_rpc_method_handler(
                watch,
                jobs_v1.WatchJobsRequest.FromString,
                jobs_v1.WatchJobsResponse.SerializeToString,
            ),
        }
        name = "mediaplane.v1.JobService"
        service = grpc.method_handlers_generic_handler(name, handlers)
        return name, lambda server: server.add_generic_rpc_handlers((service,))

    def fill(self, jobs: JobServiceStub) -> list[Any]:
        """Make as many calls as there are places, and return them when all threads are busy."""
        calls = [jobs.GetJob.future(GET, timeout=PATIENCE_SECONDS) for _ in range(PLACES)]
        eventually(lambda: self.running == THREADS)
        eventually(lambda: self._is_full(jobs))
        return calls

    def _is_full(self, jobs: JobServiceStub) -> bool:
        # Calls are taken on one by one, so the last may not have been when all threads are busy.
        probe = jobs.GetJob.future(GET, timeout=PATIENCE_SECONDS)
        try:
            probe.result(timeout=0.2)
        except grpc.FutureTimeoutError:
            probe.cancel()
        except grpc.RpcError as error:
            return error.code() is StatusCode.RESOURCE_EXHAUSTED
        return False


@pytest.fixture(params=[False, True], ids=["", "measured"])
def busy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Busy]:
    server = Busy(f"unix:{tmp_path / 's'}")
    with serving(server, CallMeter() if request.param else None):
        yield server


@contextmanager
def serving(busy: Busy, meter: CallMeter | None) -> Iterator[None]:
    server, _ = build_server(
        busy.address, [busy.service()], calls=CALLS, streams=STREAMS, meter=meter
    )
    server.start()
    try:
        yield
    finally:
        busy.let_go.set()
        server.stop(10).wait()


def test_a_call_too_many_is_refused_and_told_to_come_again(busy: Busy) -> None:
    with open_channel(busy.address) as channel:
        jobs = JobServiceStub(channel)
        calls = busy.fill(jobs)
        told = refusal(jobs.GetJob, GET)
        assert (told.code, told.reason) == (StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert "try again" in told.text
        stream = refusal(jobs.WatchJobs, jobs_v1.WatchJobsRequest())
        assert (stream.code, stream.reason) == (told.code, told.reason)
        assert busy.running == THREADS, "it was refused while all threads were busy"
        busy.let_go.set()
        assert {call.result(timeout=PATIENCE_SECONDS).name for call in calls} == {"jobs/1"}
        assert jobs.GetJob(GET, timeout=PATIENCE_SECONDS).name == "jobs/1"


def test_health_is_told_while_every_thread_is_busy(busy: Busy) -> None:
    with open_channel(busy.address) as channel:
        busy.fill(JobServiceStub(channel))
        health: Any = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest()
        answers = [health.Check(request, timeout=PATIENCE_SECONDS) for _ in range(20)]
        watched = next(iter(health.Watch(request, timeout=PATIENCE_SECONDS)))
        assert busy.running == THREADS, "it was told while all threads were busy"
    serving = health_pb2.HealthCheckResponse.SERVING
    assert {answer.status for answer in (*answers, watched)} == {serving}


def test_calls_that_were_given_up_leave_their_places(busy: Busy) -> None:
    with open_channel(busy.address) as channel:
        jobs = JobServiceStub(channel)
        for call in busy.fill(jobs):
            call.cancel()
        busy.let_go.set()
        eventually(lambda: busy.running == 0)
        # Those that waited for a thread are gone one by one.
        assert eventually(lambda: answered(jobs)).name == "jobs/1"


def answered(jobs: JobServiceStub) -> Any:
    """Return what a call is answered, or None when there was no place for it."""
    try:
        return jobs.GetJob(GET, timeout=PATIENCE_SECONDS)
    except grpc.RpcError as error:
        if error.code() is not StatusCode.RESOURCE_EXHAUSTED:
            raise
        return None


def test_a_flood_is_answered_or_refused_and_health_is_told_throughout(
    database: Databases, tmp_path: Path
) -> None:
    request = health_pb2.HealthCheckRequest()
    with serving_control(database, tmp_path, control_calls=1, control_watchers=1) as control:
        words = [sys.executable, "-m", "tests.support.flood", control.address, FLOOD_SECONDS]
        flood = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        took = []
        with open_channel(control.address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            while flood.poll() is None:
                asked_at = time.monotonic()
                health.Check(request, timeout=PATIENCE_SECONDS)
                took.append(time.monotonic() - asked_at)
        codes = json.loads(flood.communicate()[0])
        assert list(control.client.jobs(limit=1)), "it works on"
    assert codes.keys() == {"OK", "RESOURCE_EXHAUSTED"}
    assert statistics.median(took) < 1.0
