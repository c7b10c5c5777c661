"""Every kind of error crosses the wire whole, from both planes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc import StatusCode
from sqlalchemy import make_url, text

from mediaplane import errors
from mediaplane.client import open_channel
from mediaplane.serving import build_server
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1.job_service_pb2_grpc import (
    JobServiceServicer,
    JobServiceStub,
    add_JobServiceServicer_to_server,
)
from tests.support.control import ControlPlane, Refusal, refusal
from tests.support.data import serving_data
from tests.support.databases import Databases

# What a machine may branch on: https://google.aip.dev/193
REASON = re.compile(r"[A-Z][A-Z0-9_]+[A-Z0-9]")
TEXT = "Was f\u00fcr ein Fehler; try again.\nSecond line, 100 %."


def kinds(kind: type[errors.CallerError]) -> Iterator[type[errors.CallerError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


class Raising(JobServiceServicer):
    """Fails in the way it is told to, at once and in the middle of a stream."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def GetJob(self, request: jobs_v1.GetJobRequest, context: grpc.ServicerContext) -> jobs_v1.Job:
        raise self.error

    def WatchJobs(
        self, request: jobs_v1.WatchJobsRequest, context: grpc.ServicerContext
    ) -> Iterator[jobs_v1.WatchJobsResponse]:
        yield jobs_v1.WatchJobsResponse(job=jobs_v1.Job(name="jobs/1"))
        raise self.error


@contextmanager
def raising(error: Exception, directory: Path) -> Iterator[JobServiceStub]:
    address = f"unix:{directory / 'raising.sock'}"
    service = Raising(error)  # type: ignore[abstract]
    added = ("mediaplane.v1.JobService", lambda s: add_JobServiceServicer_to_server(service, s))
    server, _ = build_server(address, [added], calls=1, streams=1)
    server.start()
    try:
        with open_channel(address) as channel:
            yield JobServiceStub(channel)
    finally:
        server.stop(0).wait()


@pytest.mark.parametrize("kind", list(kinds(errors.CallerError)))
def test_an_error_for_the_caller_arrives_with_code_reason_domain_text_and_details(
    kind: type[errors.CallerError], tmp_path: Path
) -> None:
    assert REASON.fullmatch(kind.reason)
    code = StatusCode[kind.code]
    expected = Refusal(code, kind.reason, "mediaplane", {"job": "jobs/7"}, TEXT)
    with raising(kind(TEXT, job="jobs/7"), tmp_path) as stub:
        assert refusal(stub.GetJob, jobs_v1.GetJobRequest()) == expected
        stream = stub.WatchJobs(jobs_v1.WatchJobsRequest())
        assert next(stream).job.name == "jobs/1"
        assert refusal(lambda _: stream, None) == expected


def test_a_broken_database_is_an_internal_error_of_the_data_plane_too(
    database: Databases, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with database.control.write() as conn:
        conn.execute(text("ALTER TABLE library_files RENAME TO elsewhere"))
    with serving_data(database, tmp_path) as plane:
        told = plane.refused("libraries/photos/files/1")
    assert (told.code, told.reason) == (StatusCode.INTERNAL, "INTERNAL")
    reference = told.metadata["reference"]
    assert reference in told.text
    (record,) = [one for one in caplog.records if reference in one.getMessage()]
    assert "ReadOriginal" in record.getMessage()
    assert record.exc_info
    for secret in ("library_files", "select", "error", str(make_url(database.url).database)):
        assert secret not in repr(told).lower()


def test_an_enum_number_of_another_version_does_not_change_a_library(control: ControlPlane) -> None:
    library = control.client.library(control.library("photos"))
    for setting in ("hash_policy", "hash_algorithm"):
        request = libraries_v1.UpdateLibraryRequest(library=library)
        setattr(request.library, setting, 4242)
        request.update_mask.paths.append(setting)
        told = refusal(control.libraries.UpdateLibrary, request)
        assert (told.code, told.reason) == (StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
        assert "4242" in told.text
    assert control.client.library(library.name) == library


def test_a_request_beyond_the_size_limit_is_refused_and_harms_nobody(control: ControlPlane) -> None:
    vast = libraries_v1.Library(display_name="x" * (5 << 20), root_path=b"/x")
    request = libraries_v1.CreateLibraryRequest(library=vast)
    told = refusal(control.libraries.CreateLibrary, request)
    assert told.code is StatusCode.RESOURCE_EXHAUSTED
    assert not list(control.client.libraries())
