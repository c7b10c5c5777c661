"""What a caller learns when something goes wrong, and what stays inside."""

import logging
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from sqlalchemy import make_url, text
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mediaplane.client import Client
from mediaplane.serving import Service, build_server
from mediaplane.v1 import job_service_pb2 as jobs_pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from mediaplane.v1 import maintenance_service_pb2 as maintenance_pb
from tests.support.control import HASH, ControlPlane, refusal
from tests.support.databases import Databases, administrator
from tests.support.rows import Rows

GET_1 = jobs_pb.GetJobRequest(name="jobs/1")


def refused_calls(control: ControlPlane) -> Iterator[tuple[str, Callable[[Any], Any], Any, str]]:
    """One call for each way in which a caller can be wrong, with what helps against it."""
    library = control.library("photos")
    with control.database.control.write() as conn:
        done = Rows(conn).add("jobs", status="completed")
    control.create(HASH)
    jobs, libraries = control.jobs, control.libraries
    yield "INVALID_ARGUMENT", jobs.GetJob, jobs_pb.GetJobRequest(name="x"), "jobs/123"
    yield (
        "INVALID_PAGE_TOKEN",
        jobs.ListJobs,
        jobs_pb.ListJobsRequest(page_token="?"),
        "begin again",
    )
    missing = jobs_pb.GetJobRequest(name="jobs/999")
    yield "NOT_FOUND", jobs.GetJob, missing, "mediaplane job list"
    scan = libraries_pb.ScanLibraryRequest(name=library)
    yield "ACTIVE_JOB_EXISTS", libraries.ScanLibrary, scan, "mediaplane job watch"
    cancel = jobs_pb.CancelJobRequest(name=f"jobs/{done}")
    yield "FAILED_PRECONDITION", jobs.CancelJob, cancel, "completed"
    again = libraries_pb.Library(display_name="photos", root_path=b"/elsewhere")
    create = libraries_pb.CreateLibraryRequest(library=again)
    yield "ALREADY_EXISTS", libraries.CreateLibrary, create, "choose another"


CODES = {
    "INVALID_ARGUMENT": StatusCode.INVALID_ARGUMENT,
    "INVALID_PAGE_TOKEN": StatusCode.INVALID_ARGUMENT,
    "NOT_FOUND": StatusCode.NOT_FOUND,
    "ACTIVE_JOB_EXISTS": StatusCode.ALREADY_EXISTS,
    "FAILED_PRECONDITION": StatusCode.FAILED_PRECONDITION,
    "ALREADY_EXISTS": StatusCode.ALREADY_EXISTS,
}


def test_every_refusal_has_a_code_a_reason_a_domain_and_words_that_help(
    control: ControlPlane,
) -> None:
    seen = set()
    for reason, call, request, help_ in refused_calls(control):
        error = refusal(call, request)
        assert (error.code, error.reason, error.domain) == (CODES[reason], reason, "mediaplane")
        assert help_ in error.text
        seen.add(reason)
    assert seen == CODES.keys()


def assert_nothing_leaks(text_: str) -> None:
    for word in (
        "SELECT",
        "jobs.",
        "sqlite",
        "psycopg",
        "Traceback",
        ".py",
        "/",
        "Error",
        "secret",
    ):
        assert word not in text_


def reference_in(log: pytest.LogCaptureFixture, text_: str) -> str:
    """The reference that a caller was given; the log must hold the whole story under it."""
    (found,) = re.findall(r"\b[0-9a-f]{12}\b", text_)
    (record,) = [record for record in log.records if found in record.getMessage()]
    assert record.exc_info
    assert record.levelno == logging.ERROR
    return str(found)


def test_an_error_inside_gives_nothing_away_but_where_the_log_has_it(
    control: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    with control.database.control.write() as conn:
        conn.execute(text("ALTER TABLE jobs RENAME TO secret"))
    for call, request in (
        (control.jobs.GetJob, GET_1),
        (control.jobs.WatchJobs, jobs_pb.WatchJobsRequest(names=["jobs/1"])),
    ):
        error = refusal(call, request)
        assert (error.code, error.reason) == (StatusCode.INTERNAL, "INTERNAL")
        assert_nothing_leaks(error.text)
        assert error.metadata == {"reference": reference_in(caplog, error.text)}
    with control.database.control.write() as conn:
        conn.execute(text("ALTER TABLE secret RENAME TO jobs"))
    assert refusal(control.jobs.GetJob, GET_1).code is StatusCode.NOT_FOUND


def test_a_row_that_cannot_be_shown_gives_nothing_away_either(
    control: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs")
        Rows(conn).add("events", job_id=job, payload="secret")
    error = refusal(control.jobs.ListEvents, jobs_pb.ListEventsRequest(parent=f"jobs/{job}"))
    assert error.code is StatusCode.INTERNAL
    assert_nothing_leaks(error.text)
    reference_in(caplog, error.text)


@contextmanager
def without_database(database: Databases) -> Iterator[None]:
    """Take the database away under a server that has used it, and give it back."""
    url = make_url(database.url)
    if database.control.dialect == "sqlite":
        database.control.close()
        file = Path(str(url.database))
        file.rename(file.with_suffix(".away"))
        file.mkdir()
        yield
        file.rmdir()
        file.with_suffix(".away").rename(file)
        return
    with administrator(url.set(database="postgres").render_as_string(False)) as conn:
        conn.execute(text(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS false"))
        kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        conn.execute(text(kill), {"name": url.database})
        yield
        conn.execute(text(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS true"))


def test_without_its_database_the_plane_says_so_and_recovers_with_it(
    control: ControlPlane,
) -> None:
    job = control.create(HASH)
    with without_database(control.database):
        for call, request in (
            (control.jobs.GetJob, jobs_pb.GetJobRequest(name=job.name)),
            (control.jobs.CancelJob, jobs_pb.CancelJobRequest(name=job.name)),
        ):
            error = refusal(call, request)
            assert (error.code, error.reason) == (StatusCode.UNAVAILABLE, "DATABASE_UNAVAILABLE")
            assert "try again" in error.text
            assert_nothing_leaks(error.text)
    assert control.client.job(job.name) == job


def failing_service(error: Exception) -> Service:
    """A service whose every call meets an error of our choice."""

    def get(_request: Any, _context: Any) -> Any:
        raise error

    def watch(_request: Any, _context: Any) -> Iterator[Any]:
        yield jobs_pb.WatchJobsResponse()
        raise error

    handlers: dict[str, Any] = {
        "GetJob": grpc.unary_unary_rpc_method_handler(get),
        "WatchJobs": grpc.unary_stream_rpc_method_handler(
            watch, response_serializer=jobs_pb.WatchJobsResponse.SerializeToString
        ),
    }
    name = "mediaplane.v1.JobService"
    service = grpc.method_handlers_generic_handler(name, handlers)
    return name, lambda server: server.add_generic_rpc_handlers((service,))


@contextmanager
def failing(directory: Path, error: Exception) -> Iterator[Client]:
    address = f"unix:{directory / 's'}"
    server, _states = build_server(address, [failing_service(error)], calls=2, streams=2)
    server.start()
    with Client(address) as client:
        yield client
    server.stop(5).wait()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PoolTimeoutError("QueuePool limit secret"), StatusCode.UNAVAILABLE),
        (RuntimeError("secret"), StatusCode.INTERNAL),
        (OSError(5, "secret", "/secret"), StatusCode.INTERNAL),
        (AssertionError("secret"), StatusCode.INTERNAL),
    ],
)
def test_whatever_a_service_raises_ends_as_a_status_without_internals(
    tmp_path: Path, error: Exception, code: StatusCode
) -> None:
    with failing(tmp_path, error) as client:
        watch = jobs_pb.WatchJobsRequest(names=["jobs/1"])
        for call, request in (
            (client.job_service.GetJob, GET_1),
            (client.job_service.WatchJobs, watch),
        ):
            told = refusal(call, request)
            assert told.code is code
            assert_nothing_leaks(told.text)


def test_what_is_streamed_before_an_error_arrives(tmp_path: Path) -> None:
    with failing(tmp_path, RuntimeError("secret")) as client:
        stream = client.job_service.WatchJobs(jobs_pb.WatchJobsRequest(names=["jobs/1"]))
        assert next(stream) == jobs_pb.WatchJobsResponse()
        with pytest.raises(grpc.RpcError):
            next(stream)


def test_a_server_that_is_slow_to_greet_is_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as busy, Client(f"unix:{tmp_path / 's'}") as client:
        busy.bind(str(tmp_path / "s"))
        busy.listen()
        with pytest.raises(grpc.RpcError) as caught:
            client.job_service.GetJob(GET_1, timeout=0.5)
        assert caught.value.code() is StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("number", [99, -1, 2**31 - 1])
def test_an_enum_number_that_nobody_defined_is_refused_wherever_it_stands(
    control: ControlPlane, number: Any
) -> None:
    library: Any = {"display_name": "x", "root_path": b"/x"}
    for call, request in (
        (control.jobs.CreateJob, jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind=number))),
        (control.jobs.ListJobs, jobs_pb.ListJobsRequest(states=[number])),
        (control.jobs.ListJobs, jobs_pb.ListJobsRequest(kinds=[number])),
        (
            control.libraries.CreateLibrary,
            libraries_pb.CreateLibraryRequest(
                library=libraries_pb.Library(hash_policy=number, **library)
            ),
        ),
        (
            control.libraries.CreateLibrary,
            libraries_pb.CreateLibraryRequest(
                library=libraries_pb.Library(hash_algorithm=number, **library)
            ),
        ),
    ):
        error = refusal(call, request)
        assert error.code is StatusCode.INVALID_ARGUMENT
        assert str(number) in error.text


def test_an_empty_request_is_never_an_accident(control: ControlPlane) -> None:
    for call, request in (
        (control.jobs.CreateJob, jobs_pb.CreateJobRequest()),
        (control.jobs.GetJob, jobs_pb.GetJobRequest()),
        (control.jobs.CancelJob, jobs_pb.CancelJobRequest()),
        (control.jobs.RetryJob, jobs_pb.RetryJobRequest()),
        (control.libraries.CreateLibrary, libraries_pb.CreateLibraryRequest()),
        (control.libraries.UpdateLibrary, libraries_pb.UpdateLibraryRequest()),
        (control.libraries.ScanLibrary, libraries_pb.ScanLibraryRequest()),
        (control.libraries.HashLibrary, libraries_pb.HashLibraryRequest()),
    ):
        assert refusal(call, request).code is StatusCode.INVALID_ARGUMENT


def test_statistics_describe_the_database_they_come_from(control: ControlPlane) -> None:
    call = control.client.maintenance_service.GetStatistics
    found = call(maintenance_pb.GetStatisticsRequest())
    assert found.database.dialect == control.database.control.dialect
    assert found.database.schema_revision
    assert found.database.size_bytes > 0
    control.create(HASH)
    (count,) = call(maintenance_pb.GetStatisticsRequest()).jobs_by_state
    assert (count.state, count.count) == (jobs_pb.Job.STATE_PENDING, 1)
