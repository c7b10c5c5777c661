"""Calls that are opened and send no request keep nobody else from being answered."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mediaplane import health
from mediaplane.client import open_channel
from mediaplane.v1 import job_service_pb2 as jobs_v1
from tests.support.control import ControlPlane, refusal_of, serving_control
from tests.support.databases import Copies, Databases, opened
from tests.support.silence import silent_calls
from tests.support.tokens import bearing
from tests.support.waiting import PATIENCE_SECONDS, eventually

GET, WATCH = "/mediaplane.v1.JobService/GetJob", "/mediaplane.v1.JobService/WatchJobs"
CHECK, WATCH_HEALTH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
SILENT_CALLS = int(os.environ.get("MEDIAPLANE_SILENT_CALLS", "1000"))
ENDED = "calls whose request did not come"
JOB = jobs_v1.GetJobRequest(name="jobs/1").SerializeToString()


@pytest.fixture
def database(sqlite_template: Copies) -> Iterator[Databases]:
    """How a request arrives does not depend on the kind of database."""
    with sqlite_template() as url, opened(url) as database:
        yield database


@pytest.fixture
def control(database: Databases, tmp_path: Path) -> Iterator[ControlPlane]:
    """With few threads, so that silent calls can take them all."""
    with serving_control(database, tmp_path, control_calls=2, control_watchers=2) as plane:
        yield plane


def is_healthy(address: str, service: str = "") -> bool:
    request = health_pb2.HealthCheckRequest(service=service)
    with open_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(request, timeout=PATIENCE_SECONDS)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@pytest.mark.parametrize("method", [GET, WATCH, CHECK, WATCH_HEALTH])
def test_health_and_other_calls_are_answered_while_a_thousand_are_silent(
    control: ControlPlane, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    def is_answered() -> bool:
        try:
            return list(control.client.jobs(limit=1)) == []
        except grpc.RpcError:
            return False  # there was no place

    with silent_calls(control.address, method, SILENT_CALLS):
        assert eventually(lambda: is_healthy(control.address))
        assert eventually(is_answered)
        assert eventually(lambda: ENDED in caplog.text)


def test_probes_are_answered_while_others_are_silent(
    database: Databases, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"unix:{tmp_path}/probes:1"
    with health.answering(address, database.control, threading.Event()) as served:
        served.set()
        with silent_calls(address, CHECK, SILENT_CALLS):
            assert eventually(lambda: is_healthy(address, health.READINESS))
            assert eventually(lambda: ENDED in caplog.text)


def late(control: ControlPlane, requests: Callable[[], Iterator[bytes]], token: str = "") -> Any:
    """Make a call whose request comes as it likes."""
    with open_channel(control.address) as channel:
        call: Any = channel.stream_unary(GET, None, jobs_v1.Job.FromString)
        return call(
            requests(), timeout=PATIENCE_SECONDS, metadata=bearing(token) if token else None
        )


def refused(control: ControlPlane, *arguments: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        late(control, *arguments)
    return refusal_of(caught.value)


def test_a_late_request_is_waited_for_while_there_are_threads(control: ControlPlane) -> None:
    job = control.create(jobs_v1.JOB_KIND_PROBE)

    def hesitate() -> Iterator[bytes]:
        assert list(control.client.jobs())  # meanwhile others are answered
        yield jobs_v1.GetJobRequest(name=job.name).SerializeToString()

    assert late(control, hesitate).name == job.name


def test_a_caller_who_is_not_known_is_not_waited_for(control: ControlPlane) -> None:
    is_over = threading.Event()

    def never() -> Iterator[bytes]:
        assert is_over.wait(2 * PATIENCE_SECONDS)
        yield JOB

    try:
        assert refused(control, never, "mp_wrong").code is StatusCode.UNAUTHENTICATED
    finally:
        is_over.set()


def test_a_call_that_ends_without_a_request_is_told_so(control: ControlPlane) -> None:
    told = refused(control, lambda: iter(()))
    assert (told.code, told.reason) == (StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    assert "without a request" in told.text


def test_a_request_that_cannot_be_read_is_told_so(control: ControlPlane) -> None:
    told = refused(control, lambda: iter([b"\xff"]))
    assert told.code is StatusCode.INVALID_ARGUMENT
    assert "cannot be read" in told.text
