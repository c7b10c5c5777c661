"""WatchJobs and ListEvents: what happens to jobs, from any event on, without gap or repeat."""

import threading
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from mediaplane.client import Client
from mediaplane.protocol import gate
from mediaplane.protocol.values import EventType
from mediaplane.v1 import job_service_pb2 as pb
from tests.support.control import ControlPlane, refusal, serving_control, state
from tests.support.databases import Databases
from tests.support.rows import Rows
from tests.support.waiting import PATIENCE_SECONDS, eventually, must_not_block


def add_job(database: Databases, **columns: Any) -> str:
    with database.control.write() as conn:
        return f"jobs/{Rows(conn).add('jobs', **columns)}"


def say(database: Databases, job: str, *words: str) -> None:
    """Append to a job's history, each word in a transaction of its own."""
    for word in words:
        with database.control.write() as conn:
            Rows(conn).add("libraries")
            number = int(job.removeprefix("jobs/"))
            gate.append_event(conn, number, EventType.LOG, {"message": word})


def watch(control: ControlPlane, *names: str, after: int | None = None) -> Any:
    """A stream that fails, instead of hanging, when nothing comes."""
    request = pb.WatchJobsRequest(names=names, after_event_id=after)
    return control.jobs.WatchJobs(request, timeout=PATIENCE_SECONDS)


def word(message: pb.WatchJobsResponse) -> str:
    """What a message tells: a word that was said, or the type of another event."""
    if not message.HasField("event"):
        return f"is {state(message.job)}"
    is_said = message.event.type == "LOG"
    return str(message.event.payload["message"]) if is_said else message.event.type


def words(stream: Any, count: int) -> list[str]:
    return [word(next(stream)) for _ in range(count)]


def test_without_a_position_the_state_comes_first_and_then_every_event(
    control: ControlPlane,
) -> None:
    job = add_job(control.database)
    say(control.database, job, "old")
    stream = watch(control, job)
    assert words(stream, 1) == ["is pending"]
    say(control.database, job, "one", "two")
    assert words(stream, 2) == ["one", "two"]
    control.client.cancel_job(job)
    *_, last = stream
    assert (state(last.job), last.event.type) == ("cancelled", "JOB_DONE")


def test_every_message_says_where_to_go_on(control: ControlPlane) -> None:
    job = add_job(control.database)
    say(control.database, job, "old")
    stream = watch(control, job)
    first = next(stream)
    say(control.database, job, "one", "two", "three")
    messages = [first, *(next(stream) for _ in range(3))]
    for number, message in enumerate(messages):
        rest = watch(control, job, after=message.event_id)
        assert words(rest, 3 - number) == ["one", "two", "three"][number:]
        rest.cancel()
    stream.cancel()


def test_from_the_beginning_the_whole_history_of_an_ended_job_comes_and_the_stream_ends(
    control: ControlPlane,
) -> None:
    job = add_job(control.database)
    say(control.database, job, "one", "two")
    control.client.cancel_job(job)
    told = [word(message) for message in watch(control, job, after=0)]
    assert told[:2] == ["one", "two"]
    assert told[-1] == "JOB_DONE"
    assert len(told) == len(list(control.client.events(job)))


def test_behind_the_last_event_of_an_ended_job_the_stream_ends_without_a_message(
    control: ControlPlane,
) -> None:
    job = add_job(control.database)
    control.client.cancel_job(job)
    *_, last = control.client.events(job)
    assert list(watch(control, job, after=last.id)) == []
    assert list(watch(control, job, after=last.id + 1000)) == []


def test_the_stream_ends_with_the_last_event_of_the_last_job(control: ControlPlane) -> None:
    jobs = [add_job(control.database) for _ in range(3)]
    stream = watch(control, *jobs)
    assert words(stream, 3) == ["is pending"] * 3
    for job in jobs:
        say(control.database, job, "cancelled soon")
        control.client.cancel_job(job)
    told = [(message.job.name, word(message)) for message in stream]
    assert [name for name, said in told if said == "JOB_DONE"] == jobs
    assert told[-1] == (jobs[-1], "JOB_DONE")


def test_without_names_all_jobs_are_watched_those_to_come_included(control: ControlPlane) -> None:
    job = add_job(control.database)
    say(control.database, job, "old")
    *_, last = control.client.events(job)
    stream = watch(control, after=last.id)
    say(control.database, job, "one")
    other = add_job(control.database)
    say(control.database, other, "two")
    control.client.cancel_job(job)
    say(control.database, other, "three")
    told = [(message.job.name, word(message)) for message in (next(stream) for _ in range(2))]
    assert told == [(job, "one"), (other, "two")]
    while word(next(stream)) != "three":
        pass
    stream.cancel()


def test_a_position_and_names_are_checked_before_any_message(control: ControlPlane) -> None:
    job = add_job(control.database)
    for request, code in (
        (pb.WatchJobsRequest(names=[job], after_event_id=-1), StatusCode.INVALID_ARGUMENT),
        (pb.WatchJobsRequest(names=[job, "jobs/999"], after_event_id=0), StatusCode.NOT_FOUND),
    ):
        assert refusal(control.jobs.WatchJobs, request).code is code
    negative = pb.ListEventsRequest(parent=job, after_event_id=-1)
    assert refusal(control.jobs.ListEvents, negative).code is StatusCode.INVALID_ARGUMENT


def test_a_watch_goes_on_at_another_control_plane_where_it_was_cut_off(
    database: Databases, tmp_path: Path
) -> None:
    job = add_job(database)
    with serving_control(database, tmp_path) as control:
        stream = watch(control, job)
        assert words(stream, 1) == ["is pending"]
        say(database, job, "one")
        last = next(stream)
        control.stop.set()
        say(database, job, "two")
    say(database, job, "three")
    with serving_control(database, tmp_path) as control:
        stream = watch(control, job, after=last.event_id)
        assert words(stream, 2) == ["two", "three"]
        say(database, job, "four")
        assert words(stream, 1) == ["four"]
        stream.cancel()


def test_a_watch_says_at_once_from_where_it_tells(control: ControlPlane) -> None:
    job = add_job(control.database)
    say(control.database, job, "one", "two")
    first, last = (event.id for event in control.client.events())
    for after, position, news in ((None, last, "three"), (first, first, "four")):
        stream = watch(control, after=after)
        assert dict(stream.initial_metadata())["mediaplane-event-id"] == str(position)
        say(control.database, job, news)
        while word(next(stream)) != news:
            pass
        stream.cancel()


def test_who_watches_all_jobs_and_has_heard_of_none_misses_nothing_by_a_restart(
    database: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, told, streams = add_job(database), list[str](), list[Any]()
    with Client(f"unix:{tmp_path / 'control.sock'}") as client:
        begin = client.job_service.WatchJobs

        def noted(request: pb.WatchJobsRequest) -> Any:
            streams.append(begin(request))
            return streams[-1]

        monkeypatch.setattr(client.job_service, "WatchJobs", noted)

        def follow() -> None:
            for message in client.watch():
                told.append(word(message))
                if told[-1] == "last":
                    return

        thread = threading.Thread(target=follow)
        with serving_control(database, tmp_path):
            say(database, job, "old")
            thread.start()
            eventually(lambda: streams and streams[0].initial_metadata())
        say(database, job, "meanwhile")
        with serving_control(database, tmp_path), must_not_block():
            say(database, job, "last")
            thread.join()
    assert len(streams) > 1, "the fault happened"
    assert told == ["meanwhile", "last"]


def test_the_client_goes_on_by_itself_when_a_control_plane_restarts(
    database: Databases, tmp_path: Path
) -> None:
    job, told = add_job(database), list[str]()
    with Client(f"unix:{tmp_path / 'control.sock'}") as client:

        def follow() -> None:
            for message in client.watch([job]):
                told.append(word(message))

        thread = threading.Thread(target=follow)
        with serving_control(database, tmp_path) as control:
            thread.start()
            eventually(lambda: told == ["is pending"])
            say(database, job, "one")
            eventually(lambda: told == ["is pending", "one"])
        say(database, job, "two")
        with serving_control(database, tmp_path) as control, must_not_block():
            say(database, job, "three")
            control.client.cancel_job(job)
            thread.join()
    assert told[:4] == ["is pending", "one", "two", "three"]
    assert told.count("JOB_DONE") == 1


def test_the_events_of_all_jobs_are_listed_in_pages_from_behind_any_event(
    control: ControlPlane,
) -> None:
    jobs = [add_job(control.database) for _ in range(2)]
    for number in range(7):
        say(control.database, jobs[number % 2], str(number))
    listed = list(control.client.events())
    assert [event.payload["message"] for event in listed] == list("0123456")
    for event in listed:
        rest = [other.id for other in listed if other.id > event.id]
        assert [other.id for other in control.client.events(after=event.id)] == rest
    found, token = [], ""
    while True:
        request = pb.ListEventsRequest(parent="jobs/-", page_size=2, page_token=token)
        page = control.jobs.ListEvents(request)
        found += [event.id for event in page.events]
        token = page.next_page_token
        if not token:
            break
    assert found == [event.id for event in listed]


def test_a_token_of_one_parent_is_refused_by_another_and_beside_a_position(
    control: ControlPlane,
) -> None:
    job = add_job(control.database)
    say(control.database, job, "one", "two")
    token = control.jobs.ListEvents(pb.ListEventsRequest(parent=job, page_size=1)).next_page_token
    elsewhere = pb.ListEventsRequest(parent="jobs/-", page_token=token)
    assert refusal(control.jobs.ListEvents, elsewhere).reason == "INVALID_PAGE_TOKEN"
    both = pb.ListEventsRequest(parent=job, page_token=token, after_event_id=1)
    assert refusal(control.jobs.ListEvents, both).reason == "INVALID_ARGUMENT"
