"""JobService: jobs, their items, their history and their progress."""

import threading
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

import grpc
from sqlalchemy import Connection

from control_plane.feed import Feed
from control_plane.policy import admission, planning
from control_plane.services import names, paging, tenants, wire
from control_plane.store import events, job_pages, jobs
from mediaplane.errors import InvalidArgument, NotFound, Overloaded, Unavailable
from mediaplane.identity import caller
from mediaplane.protocol import audit
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.kinds import ProbePayload
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import JobKind
from mediaplane.v1 import job_service_pb2 as pb
from mediaplane.v1.job_service_pb2_grpc import JobServiceServicer

MAX_WATCHED = 100
# The metadata in which a watch says behind which event it begins.
_POSITION = "mediaplane-event-id"
_page = paging.writer(pb.ListJobsResponse, "jobs", wire.fill_job, job_pages.values)
_FINAL = {wire.to_enum(pb.Job.State, status) for status in JOBS.final}


class JobService(JobServiceServicer):
    """The jobs of this installation."""

    def __init__(self, database: Database, feed: Feed, max_watchers: int) -> None:
        self._database = database
        self._feed = feed
        self._watchers = threading.BoundedSemaphore(max_watchers)

    def CreateJob(self, request: pb.CreateJobRequest, context: grpc.ServicerContext) -> pb.Job:
        wanted = _wanted(request)
        with self._database.write(is_one_statement=wanted.is_plain) as conn:
            job = admission.create(conn, wanted)
            audit.concerns(f"jobs/{job['id']}")
        return wire.job(planning.plan(self._database, job))

    def BatchCreateJobs(
        self, request: pb.BatchCreateJobsRequest, context: grpc.ServicerContext
    ) -> pb.BatchCreateJobsResponse:
        wanted = [_wanted(one) for one in request.requests]
        is_plain = all(one.is_plain for one in wanted)
        with self._database.write(is_one_statement=is_plain) as conn:
            rows = admission.create_many(conn, wanted)
            audit.concerns(_span([row["id"] for row in rows]))
        return pb.BatchCreateJobsResponse(jobs=[wire.job(row) for row in rows])

    def GetJob(self, request: pb.GetJobRequest, context: grpc.ServicerContext) -> pb.Job:
        job_id = names.job_id(request.name)
        with self._database.read() as conn:
            values = job_pages.one(conn, caller().tenant_id, job_id)
        if values is None:
            raise _unknown(job_id)
        job = pb.Job()
        wire.fill_job(job, values)
        return job

    def ListJobs(
        self, request: pb.ListJobsRequest, context: grpc.ServicerContext
    ) -> pb.ListJobsResponse:
        limit = paging.size(request.page_size)
        statuses = tuple(sorted(_chosen(pb.Job.State, number) for number in request.states))
        kinds = tuple(sorted(_chosen(pb.JobKind, number) for number in request.kinds))
        before = _jobs_before(request.page_token, statuses, kinds) if request.page_token else None
        with self._database.read() as conn:
            rows = job_pages.page(
                conn,
                caller().tenant_id,
                limit=limit + 1,
                before=before,
                statuses=statuses,
                kinds=kinds,
            )
        page, tail = paging.split(rows, limit)
        token = _jobs_token(*job_pages.values(tail)[:2], statuses, kinds) if tail else ""
        return _page(page, token)

    def CancelJob(self, request: pb.CancelJobRequest, context: grpc.ServicerContext) -> pb.Job:
        with self._database.write() as conn:
            return wire.job(admission.cancel(conn, caller().tenant_id, names.job_id(request.name)))

    def RetryJob(self, request: pb.RetryJobRequest, context: grpc.ServicerContext) -> pb.Job:
        with self._database.write() as conn:
            job = admission.retry(conn, caller().tenant_id, names.job_id(request.name))
        return wire.job(planning.plan(self._database, job))

    def WatchJobs(
        self, request: pb.WatchJobsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchJobsResponse]:
        job_ids = frozenset(names.job_id(name) for name in request.names)
        if len(job_ids) > MAX_WATCHED:
            raise InvalidArgument(f"Name at most {MAX_WATCHED} jobs to watch, not {len(job_ids)}.")
        after_id = request.after_event_id if request.HasField("after_event_id") else None
        _check_after(after_id or 0)
        # Every stream holds a thread; beyond this many, other calls would wait for one.
        if not self._watchers.acquire(blocking=False):
            raise Overloaded("Too many jobs are being watched; try again in a while.")
        try:
            yield from self._watch(job_ids, after_id, context)
        finally:
            self._watchers.release()

    def _watch(
        self, job_ids: frozenset[int], after_id: int | None, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchJobsResponse]:
        if after_id is None:
            self._feed.look()  # what has happened by now is no news
        with self._feed.mailbox(caller().tenant_id, job_ids or None) as mailbox:
            rows = self._named(job_ids)
            is_new = after_id is None
            after_id = mailbox.since_id if after_id is None else after_id
            # At once: who is cut off before the first event can go on from here.
            context.send_initial_metadata(((_POSITION, str(after_id)),))
            if is_new:
                for row in rows:
                    yield pb.WatchJobsResponse(job=wire.job(row), event_id=after_id)
            unfinished = {row["id"] for row in rows if row["status"] not in JOBS.final}
            end_id = self._last_event(job_ids - unfinished)
            if job_ids and not unfinished and end_id <= after_id:
                return
            if not context.add_callback(mailbox.close):
                return
            for message in self._feed.follow(mailbox, after_id):
                yield message
                job_id = names.job_id(message.job.name)
                if job_id in unfinished and message.job.state in _FINAL:
                    # The job may be ahead of this event: its last one may be still to come.
                    unfinished.remove(job_id)
                    end_id = max(end_id, self._last_event([job_id]))
                if job_ids and not unfinished and end_id <= message.event_id:
                    return
        if self._feed.is_stopped:
            # An end without an error would say that the jobs have ended.
            raise Unavailable("The control plane is stopping; watch the job again.")

    def _named(self, job_ids: Collection[int]) -> list[Row]:
        with self._database.read() as conn:
            tenant_id = caller().tenant_id
            rows = jobs.get_many(conn, tenant_id, sorted(job_ids)) if job_ids else []
        if missing := set(job_ids) - {row["id"] for row in rows}:
            raise _unknown(min(missing))
        return rows

    def _last_event(self, job_ids: Collection[int]) -> int:
        with self._database.read() as conn:
            return events.last_id(conn, job_ids) if job_ids else 0

    def ListJobItems(
        self, request: pb.ListJobItemsRequest, context: grpc.ServicerContext
    ) -> pb.ListJobItemsResponse:
        job_id, limit = names.job_id(request.parent), paging.size(request.page_size)
        after = paging.decode_id(request.page_token)
        with self._database.read() as conn:
            _found(conn, job_id)
            rows = jobs.items_page(conn, job_id, limit=limit + 1, after_id=after)
        page, tail = paging.split(rows, limit)
        return pb.ListJobItemsResponse(
            items=[wire.job_item(row) for row in page],
            next_page_token=str(tail["id"]) if tail else "",
        )

    def ListEvents(
        self, request: pb.ListEventsRequest, context: grpc.ServicerContext
    ) -> pb.ListEventsResponse:
        limit, query = paging.size(request.page_size), paging.fingerprint("events", request.parent)
        after_id = _events_after(request, query)
        if request.parent == names.ALL_JOBS:
            page, tail_id = self._events_of_all(limit, after_id)
        else:
            (job,) = self._named([names.job_id(request.parent)])
            with self._database.read() as conn:
                rows = events.page(conn, limit=limit + 1, after_id=after_id, job_ids=[job["id"]])
            page, tail = paging.split(rows, limit)
            tail_id = tail["id"] if tail else None
        return pb.ListEventsResponse(
            events=[wire.event(row) for row in page],
            next_page_token=paging.encode_row(tail_id, query) if tail_id else "",
        )

    def _events_of_all(self, limit: int, after_id: int) -> tuple[Sequence[Row], int | None]:
        """Return a page of events of all jobs, and behind which to go on if there may be more."""
        # The events of one job are committed in the order of their ids; those of all are not.
        self._feed.look()
        until_id, tenant_id = self._feed.frontier_id, caller().tenant_id
        with self._database.read() as conn:
            if tenant_id is None:
                rows = events.page(conn, limit=limit + 1, after_id=after_id, until_id=until_id)
                page, tail = paging.split(rows, limit)
                return page, tail["id"] if tail else None
            page, looked_id = events.tenant_page(
                conn, tenant_id, limit=limit, after_id=after_id, until_id=until_id
            )
        return page, looked_id if looked_id < until_id else None


@lru_cache(maxsize=paging.REMEMBERED_TOKENS)
def _jobs_token(
    created_at: int, job_id: int, statuses: tuple[str, ...], kinds: tuple[str, ...]
) -> str:
    """Return the token of a page that begins behind a job, or behind where one has been."""
    # As lists, which is how tokens have been bound to them from the first.
    query = paging.fingerprint("jobs", list(statuses), list(kinds), created_at, job_id)
    return paging.encode({"created_at": created_at, "id": job_id, "query": query})


@lru_cache(maxsize=paging.REMEMBERED_TOKENS)
def _jobs_before(token: str, statuses: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[int, int]:
    """Return the creation time and the id behind which a page begins."""
    place = paging.decode(token, {"created_at": int, "id": int, "query": str})
    before = place["created_at"], place["id"]
    if token != _jobs_token(*before, statuses, kinds):
        raise paging.refused()
    return before


def _events_after(request: pb.ListEventsRequest, query: str) -> int:
    """Return the event after which a page begins."""
    _check_after(request.after_event_id)
    if not request.page_token:
        return request.after_event_id
    if request.after_event_id:
        raise InvalidArgument(
            f"after_event_id is {request.after_event_id}, but a page_token says already where to"
            " go on; leave one of them out."
        )
    return paging.decode_row(request.page_token, query)


def _check_after(event_id: int) -> None:
    if event_id < 0:
        raise InvalidArgument(f"after_event_id is {event_id}; it must not be negative.")


def _wanted(request: pb.CreateJobRequest) -> admission.Wanted:
    job = request.job
    kind = wire.from_enum(pb.JobKind, job.kind)
    if kind is None:
        raise InvalidArgument("job.kind is missing.")
    if job.HasField("probe") and kind != JobKind.PROBE:
        raise InvalidArgument("job.probe is for jobs of kind JOB_KIND_PROBE alone.")
    seconds = job.probe.duration.ToNanoseconds() / 1e9
    return admission.Wanted(
        JobKind(kind),
        names.library_slug(job.library) if job.library else None,
        tenants.chosen(job.tenant),
        priority=job.priority,
        max_attempts=job.max_attempts,
        request_id=request.request_id,
        probe=ProbePayload(seconds, job.probe.scratch_bytes),
        probe_items=job.probe.items,
    )


def _span(job_ids: Sequence[int]) -> str:
    """Return the name of the jobs of one batch, in so many words as an audit entry has room for."""
    first, last = min(job_ids), max(job_ids)
    return f"jobs/{first}" if first == last else f"jobs/{first}..{last}"


def _found(conn: Connection, job_id: int) -> Row:
    job = jobs.get(conn, caller().tenant_id, job_id)
    if job is None:
        raise _unknown(job_id)
    return job


def _unknown(job_id: int) -> NotFound:
    return NotFound(f"There is no job {job_id}; `mediaplane job list` shows them.")


def _chosen(enum: Any, number: int) -> str:
    value = wire.from_enum(enum, number)
    if value is None:
        raise InvalidArgument(f"A filter names {enum.Name(0)}, which nothing can have.")
    return value
