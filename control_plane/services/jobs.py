"""JobService: jobs, their items, their history and their progress."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc

from control_plane.policy import admission
from control_plane.services import names, paging, wire
from control_plane.store import jobs
from mediaplane.errors import InvalidArgument, NotFound, Overloaded, Unavailable
from mediaplane.protocol.database import Database
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import JobKind
from mediaplane.v1 import job_service_pb2 as pb
from mediaplane.v1.job_service_pb2_grpc import JobServiceServicer

MAX_WATCHED = 100
_POLL_SECONDS = 0.1


class JobService(JobServiceServicer):
    """The jobs of this installation."""

    def __init__(self, database: Database, stopping: threading.Event, max_watchers: int) -> None:
        self._database = database
        self._stopping = stopping
        self._watchers = threading.BoundedSemaphore(max_watchers)

    def CreateJob(self, request: pb.CreateJobRequest, context: grpc.ServicerContext) -> pb.Job:
        kind = wire.from_enum(pb.JobKind, request.job.kind)
        if kind is None:
            raise InvalidArgument("job.kind is missing.")
        library = request.job.library
        with self._database.write() as conn:
            return wire.job(
                admission.create(
                    conn,
                    JobKind(kind),
                    names.library_slug(library) if library else None,
                    priority=request.job.priority,
                    max_attempts=request.job.max_attempts,
                    request_id=request.request_id,
                )
            )

    def GetJob(self, request: pb.GetJobRequest, context: grpc.ServicerContext) -> pb.Job:
        job_id = names.job_id(request.name)
        with self._database.read() as conn:
            row = jobs.get(conn, job_id)
        if row is None:
            raise NotFound(f"There is no job {job_id}; `mediaplane job list` shows them.")
        return wire.job(row)

    def ListJobs(
        self, request: pb.ListJobsRequest, context: grpc.ServicerContext
    ) -> pb.ListJobsResponse:
        limit = paging.size(request.page_size)
        statuses = sorted(_chosen(pb.Job.State, number) for number in request.states)
        kinds = sorted(_chosen(pb.JobKind, number) for number in request.kinds)
        query = paging.fingerprint("jobs", statuses, kinds)
        with self._database.read() as conn:
            anchor = None
            if request.page_token:
                cursor = paging.decode(request.page_token, {"id": int, "query": str})
                anchor = jobs.get(conn, cursor["id"])
                if anchor is None or cursor["query"] != query:
                    raise paging.refused()
            rows = jobs.page(conn, limit=limit + 1, before=anchor, statuses=statuses, kinds=kinds)
        page, tail = paging.split(rows, limit)
        return pb.ListJobsResponse(
            jobs=[wire.job(row) for row in page],
            next_page_token=paging.encode({"id": tail["id"], "query": query}) if tail else "",
        )

    def CancelJob(self, request: pb.CancelJobRequest, context: grpc.ServicerContext) -> pb.Job:
        with self._database.write() as conn:
            return wire.job(admission.cancel(conn, names.job_id(request.name)))

    def RetryJob(self, request: pb.RetryJobRequest, context: grpc.ServicerContext) -> pb.Job:
        with self._database.write() as conn:
            return wire.job(admission.retry(conn, names.job_id(request.name)))

    def WatchJobs(
        self, request: pb.WatchJobsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchJobsResponse]:
        ids = sorted({names.job_id(name) for name in request.names})
        if not 1 <= len(ids) <= MAX_WATCHED:
            raise InvalidArgument(f"Name 1 to {MAX_WATCHED} jobs to watch, not {len(ids)}.")
        # Every stream holds a thread; beyond this many, other calls would wait for one.
        if not self._watchers.acquire(blocking=False):
            raise Overloaded("Too many jobs are being watched; try again in a while.")
        try:
            yield from self._watch(ids, context)
        finally:
            self._watchers.release()

    def _watch(
        self, ids: list[int], context: grpc.ServicerContext
    ) -> Iterator[pb.WatchJobsResponse]:
        sent: dict[int, pb.Job] = {}
        while context.is_active():
            with self._database.read() as conn:
                rows = jobs.get_many(conn, ids)
            if len(rows) < len(ids):
                gone = next(i for i in ids if i not in {row["id"] for row in rows})
                raise NotFound(f"There is no job {gone}; `mediaplane job list` shows them.")
            for row in rows:
                job = wire.job(row)
                if sent.get(row["id"]) != job:
                    sent[row["id"]] = job
                    yield pb.WatchJobsResponse(job=job)
            if all(row["status"] in JOBS.final for row in rows):
                return
            if self._stopping.wait(_POLL_SECONDS):
                # An end without an error would say that the jobs have ended.
                raise Unavailable("The control plane is stopping; watch the job again.")

    def ListJobItems(
        self, request: pb.ListJobItemsRequest, context: grpc.ServicerContext
    ) -> pb.ListJobItemsResponse:
        job_id, limit = names.job_id(request.parent), paging.size(request.page_size)
        after = paging.decode_id(request.page_token)
        with self._database.read() as conn:
            _require(jobs.get(conn, job_id) is not None, job_id)
            rows = jobs.items_page(conn, job_id, limit=limit + 1, after_id=after)
        page, tail = paging.split(rows, limit)
        return pb.ListJobItemsResponse(
            items=[wire.job_item(row) for row in page],
            next_page_token=str(tail["id"]) if tail else "",
        )

    def ListEvents(
        self, request: pb.ListEventsRequest, context: grpc.ServicerContext
    ) -> pb.ListEventsResponse:
        job_id, limit = names.job_id(request.parent), paging.size(request.page_size)
        after = paging.decode_id(request.page_token)
        with self._database.read() as conn:
            _require(jobs.get(conn, job_id) is not None, job_id)
            rows = jobs.events_page(conn, job_id, limit=limit + 1, after_id=after)
        page, tail = paging.split(rows, limit)
        return pb.ListEventsResponse(
            events=[wire.event(row) for row in page],
            next_page_token=str(tail["id"]) if tail else "",
        )


def _require(exists: bool, job_id: int) -> None:
    if not exists:
        raise NotFound(f"There is no job {job_id}; `mediaplane job list` shows them.")


def _chosen(enum: Any, number: int) -> str:
    value = wire.from_enum(enum, number)
    if value is None:
        raise InvalidArgument(f"A filter names {enum.Name(0)}, which nothing can have.")
    return value
