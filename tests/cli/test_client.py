"""Paging and errors, against a real gRPC server with made-up answers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from mediaplane.client import Client, CommandFailed, error_info, resource, translated
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1.job_service_pb2_grpc import JobServiceServicer, add_JobServiceServicer_to_server
from mediaplane.v1.library_service_pb2_grpc import (
    LibraryServiceServicer,
    add_LibraryServiceServicer_to_server,
)

FILES = 2500


class Libraries(LibraryServiceServicer):
    def __init__(self) -> None:
        self.page_sizes: list[int] = []

    def ListFiles(self, request: libraries_v1.ListFilesRequest, context: Any) -> Any:
        self.page_sizes.append(request.page_size)
        first = int(request.page_token or 0)
        last = min(first + request.page_size, FILES)
        return libraries_v1.ListFilesResponse(
            files=[libraries_v1.File(name=f"libraries/a/files/{n}") for n in range(first, last)],
            next_page_token=str(last) if last < FILES else "",
        )

    def ScanLibrary(self, request: libraries_v1.ScanLibraryRequest, context: Any) -> Any:
        info = error_details_pb2.ErrorInfo(
            reason="ACTIVE_JOB_EXISTS", domain="mediaplane", metadata={"job": "jobs/3"}
        )
        detail = any_pb2.Any()
        detail.Pack(info)
        code, _ = grpc.StatusCode.ALREADY_EXISTS.value
        status = status_pb2.Status(code=code, message="jobs/3 is running.", details=[detail])
        context.abort_with_status(rpc_status.to_status(status))

    def GetLibrary(self, request: libraries_v1.GetLibraryRequest, context: Any) -> Any:
        context.abort(grpc.StatusCode.INTERNAL, "something broke")


class Jobs(JobServiceServicer):
    """Loses the first connection of every watch."""

    def __init__(self) -> None:
        self.watches = 0

    def WatchJobs(self, request: jobs_v1.WatchJobsRequest, context: Any) -> Any:
        self.watches += 1
        state = jobs_v1.Job.STATE_RUNNING if self.watches == 1 else jobs_v1.Job.STATE_COMPLETED
        yield jobs_v1.WatchJobsResponse(job=jobs_v1.Job(name=request.names[0], state=state))
        if self.watches == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "restarting")


class Server:
    def __init__(self, address: str) -> None:
        self.address = address
        # What they leave out answers UNIMPLEMENTED.
        self.libraries = Libraries()  # type: ignore[abstract]
        self.jobs = Jobs()  # type: ignore[abstract]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(f"unix:{tmp_path}/s")
    with ThreadPoolExecutor(4) as pool:
        running = grpc.server(pool)
        add_LibraryServiceServicer_to_server(made.libraries, running)
        add_JobServiceServicer_to_server(made.jobs, running)
        running.add_insecure_port(made.address)
        running.start()
        yield made
        running.stop(0).wait()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.address) as made:
        yield made


def _numbers(files: Iterator[libraries_v1.File]) -> list[int]:
    return [int(file.name.rpartition("/")[2]) for file in files]


def test_a_listing_follows_every_page(client: Client, server: Server) -> None:
    files = client.files("a", has_error=False, include_missing=False)
    assert _numbers(files) == list(range(FILES))
    assert server.libraries.page_sizes == [1000, 1000, 1000]


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1]), (1000, [1000]), (1001, [1000, 1])])
def test_a_limit_asks_for_no_more_than_it_needs(
    client: Client, server: Server, limit: int, sizes: list[int]
) -> None:
    files = client.files("a", has_error=False, include_missing=False, limit=limit)
    assert _numbers(files) == list(range(limit))
    assert server.libraries.page_sizes == sizes


def test_the_reason_and_the_details_of_an_error_arrive(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.scan("a")
    assert error_info(caught.value) == ("ACTIVE_JOB_EXISTS", {"job": "jobs/3"})


def test_an_error_of_ours_is_told_in_its_own_words(client: Client, server: Server) -> None:
    with (
        pytest.raises(CommandFailed, match=r"^jobs/3 is running\.$") as caught,
        translated(server.address),
    ):
        client.scan("a")
    assert caught.value.reason == "ACTIVE_JOB_EXISTS"


def test_another_error_names_the_server_and_the_code(client: Client, server: Server) -> None:
    with (
        pytest.raises(CommandFailed, match="INTERNAL: something broke") as caught,
        translated(server.address),
    ):
        client.library("a")
    assert server.address in str(caught.value)


def test_a_request_that_the_server_does_not_know_is_told_as_such(client: Client) -> None:
    with (
        pytest.raises(CommandFailed, match="another version"),
        translated("the server"),
    ):
        client.statistics()


def test_without_a_server_the_message_has_the_address(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/nothing"
    with (
        Client(address) as client,
        pytest.raises(CommandFailed, match="No answer") as caught,
        translated(address),
    ):
        client.library("a")
    assert address in str(caught.value)
    assert caught.value.reason == "UNAVAILABLE"


def test_without_a_data_plane_the_message_says_how_to_name_one(client: Client) -> None:
    with pytest.raises(CommandFailed, match="MEDIAPLANE_DATA_ADDRESS"):
        client.probe_root(b"/a")


def test_watching_survives_a_restart_of_the_server(client: Client, server: Server) -> None:
    states = [job.state for job in client.watch_job("3")]
    assert states == [jobs_v1.Job.STATE_RUNNING, jobs_v1.Job.STATE_COMPLETED]
    assert server.jobs.watches == 2


@pytest.mark.parametrize("given", ["7", "jobs/7"])
def test_a_job_is_named_by_its_number_or_in_full(given: str) -> None:
    assert resource("jobs", given) == "jobs/7"
