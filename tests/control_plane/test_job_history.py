"""What a job shows of itself: the stream of its changes, its items and its events."""

from collections.abc import Iterator

from grpc import StatusCode

from mediaplane.protocol import gate
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.write_paths import paths_of
from mediaplane.v1 import job_service_pb2 as pb
from tests.support import worker
from tests.support.control import HASH, SCAN, ControlPlane, job_id, refusal, state
from tests.support.rows import Rows
from tests.support.waiting import PATIENCE_SECONDS


def watched(control: ControlPlane, *names: str) -> Iterator[pb.Job]:
    """A watch that fails, instead of hanging, when nothing comes."""
    stream = control.jobs.WatchJobs(pb.WatchJobsRequest(names=names), timeout=PATIENCE_SECONDS)
    return (response.job for response in stream)


def test_a_watch_shows_the_job_as_it_is_then_every_change_and_ends_with_it(
    control: ControlPlane,
) -> None:
    data = control.database.data
    job = control.create(HASH)
    stream = watched(control, job.name)
    assert next(stream) == job
    held = worker.claim(data)
    running = next(stream)
    assert (state(running), running.worker) == ("running", worker.WORKER)
    with data.write(*paths_of(JOBS, "heartbeat")) as conn:
        leases, figures = {held["id"]: held["lease_epoch"]}, {"processed_items": 3, "progress": 0.5}
        assert gate.heartbeat(conn, JOBS, worker.WORKER, leases, 60, {held["id"]: figures})
    halfway = next(stream)
    assert (halfway.processed_items, halfway.progress) == (3, 0.5)
    worker.finish(data, held)
    ended = next(stream)
    assert (state(ended), ended.progress) == ("completed", 1.0)
    assert list(stream) == []


def test_a_watch_of_ended_jobs_shows_each_once_and_ends(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        statuses = ["completed", "failed", "cancelled", "skipped"]
        names = [f"jobs/{Rows(conn).add('jobs', status=status)}" for status in statuses]
    seen = [(job.name, state(job)) for job in watched(control, *names, names[0])]
    assert sorted(seen) == sorted(zip(names, statuses, strict=True))


def test_a_watch_goes_on_until_the_last_job_has_ended(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        ended = Rows(conn).add("jobs", status="completed")
    waiting = control.create(HASH)
    stream = watched(control, f"jobs/{ended}", waiting.name)
    assert {next(stream).name, next(stream).name} == {f"jobs/{ended}", waiting.name}
    control.client.cancel_job(waiting.name)
    assert {(job.name, state(job)) for job in stream} == {(waiting.name, "cancelled")}


def test_a_job_that_waits_for_another_try_is_watched_on(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", status="retryable")
    stream = watched(control, f"jobs/{job}")
    assert state(next(stream)) == "retryable"
    control.client.cancel_job(str(job))
    assert {state(job) for job in stream} == {"cancelled"}


def test_a_watch_of_too_many_jobs_is_refused(control: ControlPlane) -> None:
    names = [f"jobs/{number + 1}" for number in range(101)]
    error = refusal(control.jobs.WatchJobs, pb.WatchJobsRequest(names=names))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "101" in error.text


def test_a_watch_with_one_unknown_job_is_not_found_before_any_message(
    control: ControlPlane,
) -> None:
    job = control.create(HASH)
    request = pb.WatchJobsRequest(names=[job.name, "jobs/123456"])
    error = refusal(control.jobs.WatchJobs, request)
    assert error.code is StatusCode.NOT_FOUND
    assert "123456" in error.text


def test_events_tell_the_story_of_a_job_in_order_and_its_end_comes_last(
    control: ControlPlane,
) -> None:
    library = control.library("photos")
    name = control.create(SCAN, library).name
    data = control.database.data
    held = worker.claim(data)
    worker.finish(data, held, "retry", error_code="disk", error_message="The disk is slow.")
    control.client.retry_job(name)
    held = worker.claim(data)
    worker.finish(data, held, "complete")
    events = list(control.client.events(name))
    assert [event.type for event in events] == [
        "JOB_ADDED",
        "JOB_STARTED",
        "JOB_ERROR",
        "LOG",
        "JOB_STARTED",
        "JOB_DONE",
    ]
    added, started, failed, put_back, _, done = (dict(event.payload) for event in events)
    assert added == {"kind": "scan", "library": "photos", "accept_new_root": False}
    task = {"library": "photos", "accept_new_root": False}
    assert started == task | {"worker": worker.WORKER}
    assert failed == {"error_code": "disk", "error_message": "The disk is slow."}
    assert put_back == {"level": "info", "message": "Waits for a worker again, on request."}
    assert done["status"] == "completed"
    assert [event.id for event in events] == sorted({event.id for event in events})
    assert [event.name for event in events] == [f"{name}/events/{event.id}" for event in events]


def test_items_and_events_come_in_pages_without_repeats_or_gaps(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        rows = Rows(conn)
        job, other = rows.add("jobs", status="running"), rows.add("jobs", status="running")
        items, events = [], []
        for _ in range(7):
            items.append(rows.add("job_items", job_id=job))
            events.append(rows.add("events", job_id=job))
            rows.add("job_items", job_id=other)
            rows.add("events", job_id=other)
    name = f"jobs/{job}"
    found_items, found_events, token = [], [], ""
    for _ in range(4):
        page = control.jobs.ListJobItems(
            pb.ListJobItemsRequest(parent=name, page_size=2, page_token=token)
        )
        found_items += [item.name for item in page.items]
        token = page.next_page_token
    assert token == ""
    for _ in range(4):
        history = control.jobs.ListEvents(
            pb.ListEventsRequest(parent=name, page_size=2, page_token=token)
        )
        found_events += [event.id for event in history.events]
        token = history.next_page_token
    assert token == ""
    assert found_items == [f"{name}/items/{item}" for item in items]
    assert found_events == events


def test_an_item_shows_how_far_it_is(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running")
        Rows(conn).add(
            "job_items",
            job_id=job,
            status="completed",
            message="One file was left out.",
            processed_items=4,
            total_items=5,
            worker_id="worker-9",
        )
    (item,) = control.client.job_items(str(job))
    assert item.state == pb.JobItem.STATE_COMPLETED
    assert (item.processed_items, item.total_items, item.worker) == (4, 5, "worker-9")
    assert item.message == "One file was left out."


def test_a_hash_is_cut_into_items_that_cover_its_files(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        files = [
            Rows(conn).add("library_files", size_bytes=5, device=1, inode=inode)
            for inode in range(3)
        ]
    job = control.create(HASH)
    assert (job.total_items, job.total_bytes) == (3, 15)
    (item,) = control.client.job_items(job.name)
    assert (item.total_items, item.state) == (3, pb.JobItem.STATE_PENDING)
    with control.database.control.read() as conn:
        row = Rows(conn).get("job_items", int(item.name.rpartition("/")[2]))
    assert row["payload"] == {
        "first_file_id": files[0],
        "last_file_id": files[-1],
        "smallest_bytes": 0,
        "largest_bytes": 262_144,
        "is_prefix": False,
    }
    assert row["job_id"] == job_id(job)
