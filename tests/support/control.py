"""The real services of the control plane on a unix socket, and what their refusals say."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1.health import HealthServicer
from grpc_status import rpc_status

from control_plane.audit import Auditor
from control_plane.feed import Feed
from control_plane.server import services
from control_plane.settings import ControlSettings
from mediaplane.client import Client
from mediaplane.protocol.bell import Bell
from mediaplane.serving import build_server
from mediaplane.tokens import Tokens
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1.duplicate_service_pb2_grpc import DuplicateServiceStub
from mediaplane.v1.job_service_pb2_grpc import JobServiceStub
from mediaplane.v1.library_service_pb2_grpc import LibraryServiceStub
from tests.support.databases import Databases

SCAN = jobs_v1.JOB_KIND_SCAN
HASH = jobs_v1.JOB_KIND_HASH
PROBE = jobs_v1.JOB_KIND_PROBE

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that answers, without its loops: nothing moves but what a test moves."""

    database: Databases
    address: str
    server: grpc.Server
    states: HealthServicer
    stop: threading.Event
    client: Client

    @property
    def jobs(self) -> JobServiceStub:
        return self.client.job_service

    @property
    def libraries(self) -> LibraryServiceStub:
        return self.client.library_service

    @property
    def duplicates(self) -> DuplicateServiceStub:
        return self.client.duplicate_service

    def library(self, slug: str, root: bytes = b"") -> str:
        """Add a library and return its name."""
        return self.client.add_library(slug, root or b"/media/" + slug.encode(), slug).name

    def create(
        self, kind: jobs_v1.JobKind, library: str = "", request_id: str = "", **job: Any
    ) -> jobs_v1.Job:
        asked = jobs_v1.Job(kind=kind, library=library, **job)
        request = jobs_v1.CreateJobRequest(job=asked, request_id=request_id)
        return self.jobs.CreateJob(request)

    def events(self, name: str) -> list[str]:
        return [event.type for event in self.client.events(name)]

    def scan_status(self, library: str) -> str:
        found = self.libraries.GetLibrary(libraries_v1.GetLibraryRequest(name=library))
        status = libraries_v1.Library.ScanStatus.Name(found.scan_status)
        return status.removeprefix("SCAN_STATUS_").lower()


@dataclass(frozen=True)
class Refusal:
    """What a caller learns when a call is refused."""

    code: grpc.StatusCode
    reason: str
    domain: str
    metadata: dict[str, str]
    text: str


@contextmanager
def serving_control(
    database: Databases, directory: Path, **settings: Any
) -> Iterator[ControlPlane]:
    chosen, stop = ControlSettings(**settings), threading.Event()
    address = f"unix:{directory / 'control.sock'}"
    # One bell for both: what the data plane does in a test is heard as from another process.
    bell = database.control.bell = database.data.bell = Bell(database.control, None)
    feed = Feed(database.control, bell, chosen.feed_seconds)
    auditor = Auditor(database.control)
    server, states = build_server(
        address,
        services(database.control, feed, chosen),
        calls=chosen.control_calls,
        streams=chosen.control_watchers,
        tokens=Tokens(database.control),
        note_refusal=auditor.note_refusal,
    )
    feed.start()
    auditor.start()
    server.start()
    try:
        with Client(address) as client:
            yield ControlPlane(database, address, server, states, stop, client)
    finally:
        stop.set()
        feed.stop()
        server.stop(5).wait()
        auditor.stop()
        bell.close()


@pytest.fixture
def control(database: Databases, tmp_path: Path) -> Iterator[ControlPlane]:
    with serving_control(database, tmp_path) as plane:
        yield plane


def job_id(job: jobs_v1.Job) -> int:
    return int(job.name.removeprefix("jobs/"))


def state(job: jobs_v1.Job) -> str:
    return jobs_v1.Job.State.Name(job.state).removeprefix("STATE_").lower()


def refusal(call: Callable[[Any], Any], request: Any) -> Refusal:
    """Make a call that must be refused, and return how it was."""

    def make() -> None:
        answer = call(request)
        if isinstance(answer, grpc.RpcContext):  # a stream is refused when it is read
            list(cast(Any, answer))

    with pytest.raises(grpc.RpcError) as caught:
        make()
    return refusal_of(caught.value)


def refusal_of(error: grpc.RpcError) -> Refusal:
    info = error_details_pb2.ErrorInfo()
    status = rpc_status.from_call(cast(grpc.Call, error))
    if status is not None:
        assert len(status.details) == 1
        status.details[0].Unpack(info)
    text = error.details() or ""
    return Refusal(error.code(), info.reason, info.domain, dict(info.metadata), text)


def at_once(*calls: Callable[[], Answer]) -> tuple[list[Answer], list[Refusal]]:
    """Make calls at the same moment; return the answers and the refusals."""
    start = threading.Barrier(len(calls))
    answers: list[Answer] = []
    refusals: list[Refusal] = []

    def make(call: Callable[[], Answer]) -> None:
        start.wait()
        try:
            answers.append(call())
        except grpc.RpcError as error:
            refusals.append(refusal_of(error))

    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(make, calls))
    return answers, refusals
