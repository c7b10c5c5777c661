"""Streams: how many there may be, and how they end when a plane stops."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc import StatusCode

from control_plane import server as control_server
from control_plane.settings import ControlSettings
from data_plane import server as data_server
from data_plane.settings import DataSettings
from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import is_serving
from mediaplane.v1.content_service_pb2 import ReadOriginalRequest
from mediaplane.v1.job_service_pb2 import JOB_KIND_SCAN, GetJobRequest, WatchJobsRequest
from tests.support.control import (
    ControlPlane,
    job_id,
    refusal,
    refusal_of,
    serving_control,
    state,
)
from tests.support.databases import Databases
from tests.support.rows import Rows
from tests.support.waiting import PATIENCE_SECONDS, eventually

# More than all buffers on the way hold, so that the server waits for its reader.
VAST_BYTES = 16 << 30


@contextmanager
def running(run: Any, settings: Any, locations: Locations) -> Iterator[threading.Event]:
    """A whole plane in a thread; setting the event stops it, and so does leaving."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(locations, settings, stop))
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def locations(database: Databases, directory: Path) -> Locations:
    return Locations(
        state=directory,
        database_url=database.url,
        control_address=f"unix:{directory / 'control.sock'}",
        data_address=f"unix:{directory / 'data.sock'}",
    )


def waiting_jobs(database: Databases, count: int) -> list[str]:
    with database.control.write() as conn:
        rows = Rows(conn)
        return [f"jobs/{rows.add('jobs')}" for _ in range(count)]


def watch(control: ControlPlane, job: str) -> Any:
    return control.jobs.WatchJobs(WatchJobsRequest(names=[job]))


def end(control: ControlPlane, job: str, stream: Any) -> None:
    """End a job, and with it the stream of who watches it."""
    control.client.cancel_job(job)
    *_, last = stream
    assert state(last.job) == "cancelled"


def test_watchers_beyond_the_limit_are_turned_away_while_other_calls_are_answered(
    database: Databases, tmp_path: Path
) -> None:
    first, *others = waiting_jobs(database, 3)
    with serving_control(database, tmp_path, control_calls=1, control_watchers=3) as control:
        streams = {job: watch(control, job) for job in (first, *others)}
        for job, stream in streams.items():
            assert next(stream).job.name == job
        for _ in range(5):
            told = refusal(control.jobs.WatchJobs, WatchJobsRequest(names=[first]))
            assert (told.code, told.reason) == (StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
            assert (
                control.jobs.GetJob(GetJobRequest(name=first), timeout=PATIENCE_SECONDS).name
                == first
            )
        end(control, first, streams[first])
        assert [state(message.job) for message in watch(control, first)] == ["cancelled"]
        for job in others:
            end(control, job, streams[job])


def test_a_watcher_who_hangs_up_leaves_a_place(database: Databases, tmp_path: Path) -> None:
    (job,) = waiting_jobs(database, 1)
    with serving_control(database, tmp_path, control_watchers=1) as control:
        gone = watch(control, job)
        next(gone)
        gone.cancel()
        end(control, job, eventually(lambda: accepted(control, job)))


def accepted(control: ControlPlane, job: str) -> Any:
    """Return a stream that has begun, or None when there was no place for it."""
    stream = watch(control, job)
    try:
        next(stream)
    except grpc.RpcError as error:
        if refusal_of(error).reason != "OVERLOADED":
            raise
        return None
    return stream


def test_refused_watchers_do_not_use_up_the_places(database: Databases, tmp_path: Path) -> None:
    (job,) = waiting_jobs(database, 1)
    with serving_control(database, tmp_path, control_watchers=1) as control:
        for names, code in (
            (["jobs/x"], StatusCode.INVALID_ARGUMENT),
            ([job, "jobs/999"], StatusCode.NOT_FOUND),
            ([f"jobs/{number}" for number in range(1, 102)], StatusCode.INVALID_ARGUMENT),
        ):
            assert refusal(control.jobs.WatchJobs, WatchJobsRequest(names=names)).code is code
        end(control, job, watch(control, job))


def test_a_control_plane_that_stops_ends_its_watch_streams_without_claiming_success(
    database: Databases, tmp_path: Path
) -> None:
    where = locations(database, tmp_path)
    with (
        Client(where.control_address) as client,
        running(control_server.run, ControlSettings(stop_grace_seconds=60), where) as stop,
    ):
        eventually(lambda: is_serving(where.control_address))
        client.add_library("photos", b"/media/photos", "photos")
        job = client.scan("photos")
        assert job.kind == JOB_KIND_SCAN
        stream = client.job_service.WatchJobs(WatchJobsRequest(names=[job.name]))
        assert job_id(next(stream).job) == job_id(job)
        stop.set()
        told = refusal(lambda _: stream, None)
    assert (told.code, told.reason) == (StatusCode.UNAVAILABLE, "UNAVAILABLE")
    assert "watch the job again" in told.text


def test_a_reader_who_does_not_read_cannot_keep_the_data_plane_from_stopping(
    database: Databases, tmp_path: Path
) -> None:
    where, file = locations(database, tmp_path), tmp_path / "vast"
    file.touch()
    os.truncate(file, VAST_BYTES)
    with database.control.write() as conn:
        rows = Rows(conn)
        library = rows.add("libraries", absolute_path=bytes(tmp_path))
        mtime = file.stat().st_mtime_ns
        file_id = rows.add("library_files", library_id=library, rel_path=b"vast",
                           size_bytes=VAST_BYTES, mtime_ns=mtime)  # fmt: skip
    settings = DataSettings(slots=1, stop_grace_seconds=0.1)
    with (
        Client(where.control_address, where.data_address) as client,
        running(data_server.run, settings, where) as stop,
    ):
        eventually(lambda: is_serving(where.data_address))
        name = f"libraries/{library}/files/{file_id}"
        stream = client.content_service.ReadOriginal(ReadOriginalRequest(name=name))
        assert next(stream).size_bytes == VAST_BYTES
        stop.set()
        assert refusal(lambda _: stream, None).code in (
            StatusCode.UNAVAILABLE,
            StatusCode.CANCELLED,
        )
