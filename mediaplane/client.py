"""Talks to both planes over gRPC: channels, paging, and errors in words that help."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self, cast

import grpc

from mediaplane import traces
from mediaplane.credentials import NO_CREDENTIALS, Credentials, connect
from mediaplane.v1 import asset_service_pb2_grpc as assets_grpc
from mediaplane.v1 import audit_service_pb2_grpc as audit_grpc
from mediaplane.v1 import content_service_pb2_grpc as content_grpc
from mediaplane.v1 import data_plane_service_pb2 as data_plane_v1
from mediaplane.v1 import data_plane_service_pb2_grpc as data_plane_grpc
from mediaplane.v1 import duplicate_service_pb2 as duplicates_v1
from mediaplane.v1 import duplicate_service_pb2_grpc as duplicates_grpc
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import job_service_pb2_grpc as jobs_grpc
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1 import library_service_pb2_grpc as libraries_grpc
from mediaplane.v1 import maintenance_service_pb2 as maintenance_v1
from mediaplane.v1 import maintenance_service_pb2_grpc as maintenance_grpc
from mediaplane.v1 import schedule_service_pb2_grpc as schedules_grpc
from mediaplane.v1 import thumbnail_service_pb2_grpc as thumbnails_grpc
from mediaplane.v1 import token_service_pb2_grpc as tokens_grpc
from mediaplane.v1 import worker_service_pb2 as workers_v1
from mediaplane.v1 import worker_service_pb2_grpc as workers_grpc

DOMAIN = "mediaplane"
# The metadata in which a watch says behind which event it begins.
_POSITION = "mediaplane-event-id"
LARGEST_PAGE = 1000
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# A server takes pings on an idle connection every five minutes and hangs up on eager clients.
_KEEPALIVE_MS = 310_000
# For how long a watch waits for a control plane: one that restarts, and one never heard of.
_RESTART_SECONDS = 30.0
_GREETING_SECONDS = 5.0


class CommandFailed(Exception):
    """What was asked for did not happen; the message says why and what to do."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Client:
    """The services of both planes; the data plane is connected to on first use only."""

    def __init__(
        self,
        control_address: str,
        data_address: str | None = None,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        self._credentials = credentials
        self.control_address = control_address
        self.data_address = data_address
        self._channels: list[grpc.Channel] = []
        control = self._connect(control_address)
        self.audit_service = audit_grpc.AuditServiceStub(control)
        self.asset_service = assets_grpc.AssetServiceStub(control)
        self.duplicate_service = duplicates_grpc.DuplicateServiceStub(control)
        self.job_service = jobs_grpc.JobServiceStub(control)
        self.library_service = libraries_grpc.LibraryServiceStub(control)
        self.maintenance_service = maintenance_grpc.MaintenanceServiceStub(control)
        self.schedule_service = schedules_grpc.ScheduleServiceStub(control)
        self.thumbnail_service = thumbnails_grpc.ThumbnailServiceStub(control)
        self.token_service = tokens_grpc.TokenServiceStub(control)
        self.worker_service = workers_grpc.WorkerServiceStub(control)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels:
            channel.close()

    def _connect(self, address: str) -> grpc.Channel:
        channel = traces.carried(open_channel(address, self._credentials))
        self._channels.append(channel)
        return channel

    @cached_property
    def _data_channel(self) -> grpc.Channel:
        if not self.data_address:
            raise CommandFailed(
                "No address of a data plane is known; set MEDIAPLANE_DATA_ADDRESS to one."
            )
        return self._connect(self.data_address)

    @cached_property
    def data_plane_service(self) -> data_plane_grpc.DataPlaneServiceStub:
        return data_plane_grpc.DataPlaneServiceStub(self._data_channel)

    @cached_property
    def content_service(self) -> content_grpc.ContentServiceStub:
        return content_grpc.ContentServiceStub(self._data_channel)

    def libraries(
        self, limit: int | None = None, *, in_trash: bool = False
    ) -> Iterator[libraries_v1.Library]:
        request = libraries_v1.ListLibrariesRequest(in_trash=in_trash)
        return pages(self.library_service.ListLibraries, request, "libraries", limit)

    def library(self, slug: str) -> libraries_v1.Library:
        request = libraries_v1.GetLibraryRequest(name=library_name(slug))
        return self.library_service.GetLibrary(request)

    def add_library(
        self, name: str, root: bytes, slug: str = "", **settings: Any
    ) -> libraries_v1.Library:
        library = libraries_v1.Library(display_name=name, root_path=root, **settings)
        request = libraries_v1.CreateLibraryRequest(library=library, library_id=slug)
        return self.library_service.CreateLibrary(request)

    def change_library(self, slug: str, **settings: Any) -> libraries_v1.Library:
        library = libraries_v1.Library(name=library_name(slug), **settings)
        request = libraries_v1.UpdateLibraryRequest(library=library)
        request.update_mask.paths.extend(settings)
        return self.library_service.UpdateLibrary(request)

    def remove_library(self, slug: str) -> libraries_v1.Library:
        request = libraries_v1.DeleteLibraryRequest(name=library_name(slug))
        return self.library_service.DeleteLibrary(request)

    def restore_library(self, slug: str) -> libraries_v1.Library:
        request = libraries_v1.RestoreLibraryRequest(name=library_name(slug))
        return self.library_service.RestoreLibrary(request)

    def purge_library(self, slug: str) -> Iterator[int]:
        """Take a library in the trash out of the database; yields the rows of each bite."""
        request = libraries_v1.PurgeLibraryRequest(name=library_name(slug))
        is_gone = False
        while not is_gone:
            purged = self.library_service.PurgeLibrary(request)
            is_gone = purged.is_gone
            yield purged.removed_rows

    def scan(self, slug: str, *, accept_new_root: bool = False) -> jobs_v1.Job:
        request = libraries_v1.ScanLibraryRequest(
            name=library_name(slug), accept_new_root=accept_new_root
        )
        return self.library_service.ScanLibrary(request)

    def hash(self, slug: str = "-", tenant: str = "") -> jobs_v1.Job:
        request = libraries_v1.HashLibraryRequest(name=library_name(slug), tenant=tenant)
        return self.library_service.HashLibrary(request)

    def verify(self, slug: str) -> jobs_v1.Job:
        job = jobs_v1.Job(kind="JOB_KIND_VERIFY", library=library_name(slug))
        return self.job_service.CreateJob(jobs_v1.CreateJobRequest(job=job))

    def files(
        self, slug: str, *, has_error: bool, include_missing: bool, limit: int | None = None
    ) -> Iterator[libraries_v1.File]:
        request = libraries_v1.ListFilesRequest(
            parent=library_name(slug), has_error=has_error, include_missing=include_missing
        )
        return pages(self.library_service.ListFiles, request, "files", limit)

    def scan_errors(self, slug: str, limit: int | None = None) -> Iterator[libraries_v1.ScanError]:
        request = libraries_v1.ListScanErrorsRequest(parent=library_name(slug))
        return pages(self.library_service.ListScanErrors, request, "scan_errors", limit)

    def duplicate_groups(
        self,
        limit: int | None = None,
        *,
        order: str = "copies",
        library: str = "",
        path_prefix: bytes = b"",
        media_type: str = "unspecified",
        min_size_bytes: int = 0,
    ) -> Iterator[duplicates_v1.DuplicateGroup]:
        """Order and media type by their short lowercase names; empty filters let all through."""
        request = duplicates_v1.ListDuplicateGroupsRequest(
            order=f"ORDER_{order.upper()}",
            library=library_name(library) if library else "",
            path_prefix=path_prefix,
            media_type=f"TYPE_{media_type.upper()}",
            min_size_bytes=min_size_bytes,
        )
        return pages(self.duplicate_service.ListDuplicateGroups, request, "groups", limit)

    def duplicate_files(
        self, group: str, limit: int | None = None, tenant: str = ""
    ) -> Iterator[libraries_v1.File]:
        request = duplicates_v1.ListDuplicateFilesRequest(
            parent=resource("duplicateGroups", group), tenant=tenant
        )
        return pages(self.duplicate_service.ListDuplicateFiles, request, "files", limit)

    def verify_duplicates(self, *, repair: bool) -> duplicates_v1.VerifyDuplicateGroupsResponse:
        request = duplicates_v1.VerifyDuplicateGroupsRequest(repair=repair)
        return self.duplicate_service.VerifyDuplicateGroups(request)

    def jobs(
        self, states: Sequence[str] = (), kinds: Sequence[str] = (), limit: int | None = None
    ) -> Iterator[jobs_v1.Job]:
        """Newest first; states and kinds by their short lowercase names."""
        request = jobs_v1.ListJobsRequest(
            states=[f"STATE_{state.upper()}" for state in states],
            kinds=[f"JOB_KIND_{kind.upper()}" for kind in kinds],
        )
        return pages(self.job_service.ListJobs, request, "jobs", limit)

    def create_probe(self, seconds: float, items: int = 0) -> jobs_v1.Job:
        """Admit a job that does nothing of use, for a while."""
        job = jobs_v1.Job(kind="JOB_KIND_PROBE", probe=jobs_v1.Probe(items=items))
        job.probe.duration.FromNanoseconds(round(seconds * 1e9))
        return self.job_service.CreateJob(jobs_v1.CreateJobRequest(job=job))

    def sweep(self) -> jobs_v1.Job:
        job = jobs_v1.Job(kind="JOB_KIND_SWEEP")
        return self.job_service.CreateJob(jobs_v1.CreateJobRequest(job=job))

    def job(self, job: str) -> jobs_v1.Job:
        return self.job_service.GetJob(jobs_v1.GetJobRequest(name=resource("jobs", job)))

    def job_items(self, job: str, limit: int | None = None) -> Iterator[jobs_v1.JobItem]:
        request = jobs_v1.ListJobItemsRequest(parent=resource("jobs", job))
        return pages(self.job_service.ListJobItems, request, "items", limit)

    def events(
        self, job: str = "-", limit: int | None = None, after: int = 0
    ) -> Iterator[jobs_v1.Event]:
        """What happened to a job, or to all, after an event."""
        request = jobs_v1.ListEventsRequest(parent=resource("jobs", job), after_event_id=after)
        return pages(self.job_service.ListEvents, request, "events", limit)

    def cancel_job(self, job: str) -> jobs_v1.Job:
        return self.job_service.CancelJob(jobs_v1.CancelJobRequest(name=resource("jobs", job)))

    def retry_job(self, job: str) -> jobs_v1.Job:
        return self.job_service.RetryJob(jobs_v1.RetryJobRequest(name=resource("jobs", job)))

    def watch_job(self, job: str) -> Iterator[jobs_v1.Job]:
        """The job as it is, then every change until it is in a final state."""
        for response in self.watch([job]):
            yield response.job

    def watch(
        self, jobs: Sequence[str] = (), after: int | None = None
    ) -> Iterator[jobs_v1.WatchJobsResponse]:
        """What happens to jobs, or to all, from now on or from behind an event.

        A control plane that restarts in between is waited for; nothing is missed or repeated.
        """
        request = jobs_v1.WatchJobsRequest(names=[resource("jobs", job) for job in jobs])
        if after is not None:
            request.after_event_id = after
        lost_at, patience_seconds = 0.0, _GREETING_SECONDS
        while True:
            try:
                stream = self.job_service.WatchJobs(request)
                position = _position(stream)
                if position is not None:
                    lost_at, patience_seconds = 0.0, _RESTART_SECONDS
                    # Of named jobs, their states are to be shown before a new stream may skip that.
                    if not jobs:
                        request.after_event_id = position
                for response in stream:
                    lost_at, patience_seconds = 0.0, _RESTART_SECONDS
                    # Of several jobs, all are to be shown before a new stream may skip that.
                    if response.HasField("event") or len(request.names) == 1:
                        request.after_event_id = response.event_id
                    yield response
            except grpc.RpcError as error:
                lost_at = lost_at or time.monotonic()
                is_over = time.monotonic() > lost_at + patience_seconds
                if error.code() is not grpc.StatusCode.UNAVAILABLE or is_over:
                    raise
                time.sleep(1)
            else:
                return

    def workers(self, limit: int | None = None) -> Iterator[workers_v1.Worker]:
        request = workers_v1.ListWorkersRequest()
        return pages(self.worker_service.ListWorkers, request, "workers", limit)

    def command_worker(self, worker: str, command: str) -> workers_v1.Worker:
        """Tell a worker what to do, by the short lowercase name of the command."""
        request = workers_v1.CommandWorkerRequest(
            name=resource("workers", worker), command=f"COMMAND_{command.upper()}"
        )
        return self.worker_service.CommandWorker(request)

    def statistics(self) -> maintenance_v1.Statistics:
        return self.maintenance_service.GetStatistics(maintenance_v1.GetStatisticsRequest())

    def probe_root(self, root: bytes) -> data_plane_v1.ProbeRootResponse:
        request = data_plane_v1.ProbeRootRequest(root_path=root)
        return self.data_plane_service.ProbeRoot(request)


def _position(stream: Any) -> int | None:
    """Wait until a watch has begun, and return where; None where a server does not say that."""
    told = dict(stream.initial_metadata() or ())
    return int(told[_POSITION]) if _POSITION in told else None


def open_channel(address: str, credentials: Credentials = NO_CREDENTIALS) -> grpc.Channel:
    """Connect lazily to a plane; a broken connection is tried again soon."""
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        # Not min_reconnect_backoff_ms: it limits how long a busy server may take to greet.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 5000),
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", 20_000),
        # A proxy of the environment would be asked for what is on this machine.
        ("grpc.enable_http_proxy", 0),
    ]
    return connect(address, credentials, options)


def pages(
    call: Callable[[Any], Any], request: Any, field: str, limit: int | None = None
) -> Iterator[Any]:
    """Yield the rows of a listing, page after page, up to a limit."""
    remaining = limit
    while remaining is None or remaining > 0:
        request.page_size = LARGEST_PAGE if remaining is None else min(remaining, LARGEST_PAGE)
        response = call(request)
        rows = getattr(response, field)
        if remaining is not None:
            rows = rows[:remaining]
            remaining -= len(rows)
        yield from rows
        if not response.next_page_token:
            return
        request.page_token = response.next_page_token
        if field == "events":
            request.ClearField("after_event_id")  # the token knows where to go on


def resource(collection: str, given: str) -> str:
    """'jobs/7' from what a person types: '7' or 'jobs/7'."""
    return given if given.startswith(f"{collection}/") else f"{collection}/{given}"


def library_name(slug: str) -> str:
    return resource("libraries", slug)


def error_info(error: grpc.RpcError) -> tuple[str, dict[str, str]]:
    """The stable reason and the details that a server of ours attached; else '' and nothing."""
    # Only errors need them, and they import all of asyncio.
    from google.rpc import error_details_pb2  # noqa: PLC0415
    from grpc_status import rpc_status  # noqa: PLC0415

    try:
        status = rpc_status.from_call(cast(grpc.Call, error))
    except ValueError:
        return "", {}
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Is(info.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
            return info.reason, dict(info.metadata)
    return "", {}


def failure(error: grpc.RpcError, address: str, hint: str = "") -> CommandFailed:
    """Turn an error of gRPC into one for people."""
    reason, _ = error_info(error)
    code = error.code()
    text = error.details() or ""
    if reason and text:
        return CommandFailed(text, reason)
    if code is grpc.StatusCode.UNAVAILABLE:
        advice = hint or (
            "check that it runs and that the address is right; of one that is encrypted, that"
            " MEDIAPLANE_TLS_CA names the authority of its certificate, and"
            " MEDIAPLANE_TLS_CLIENT_CERT yours if it asks for one."
        )
        return CommandFailed(f"No answer from {address}: {advice}", "UNAVAILABLE")
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return CommandFailed(
            f"The server at {address} does not know this request; it is another version of"
            " mediaplane, or another program.",
            "UNIMPLEMENTED",
        )
    text = text or "no details"
    return CommandFailed(f"The server at {address} answered {code.name}: {text}", code.name)


@contextmanager
def translated(address: str, hint: str = "") -> Iterator[None]:
    """Raise `CommandFailed` in place of errors of gRPC."""
    try:
        yield
    except grpc.RpcError as error:
        raise failure(error, address, hint) from error
