"""Schedules are kept through calls: added, listed, changed, removed and run."""

from datetime import UTC, datetime
from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import text

from mediaplane import operation
from mediaplane.v1 import schedule_service_pb2 as pb
from tests.support.control import ControlPlane, at_once, refusal

NIGHTLY = {"action": "ACTION_RESCAN", "cron": "30 2 * * *"}


def add(control: ControlPlane, name: str = "nightly", **fields: Any) -> pb.Schedule:
    return operation.add_schedule(control.client, name, **(NIGHTLY | fields))


def refused_creation(control: ControlPlane, name: str = "nightly", **fields: Any) -> Any:
    schedule = pb.Schedule(**(NIGHTLY | fields))
    request = pb.CreateScheduleRequest(schedule=schedule, schedule_id=name)
    return refusal(control.client.schedule_service.CreateSchedule, request)


def test_an_installation_begins_with_a_schedule_of_each_action_and_one_is_enabled(
    control: ControlPlane,
) -> None:
    listed = {one.name: one.is_enabled for one in operation.schedules(control.client)}
    assert listed == {
        "schedules/checkpoint": False,
        "schedules/cleanup": False,
        "schedules/rescan": False,
        "schedules/retention": True,
        "schedules/sweep": False,
        "schedules/verify": False,
    }


def test_a_new_schedule_is_enabled_and_knows_its_next_three_times(control: ControlPlane) -> None:
    added = add(control, time_zone="Asia/Tokyo")
    assert added.name == "schedules/nightly"
    assert (added.is_enabled, added.last_outcome) == (True, pb.Schedule.OUTCOME_NONE)
    assert added.missed_runs == pb.Schedule.MISSED_RUNS_RUN_ONCE
    times = [stamp.ToDatetime(UTC) for stamp in added.upcoming_run_times]
    assert [f"{moment:%H:%M}" for moment in times] == ["17:30"] * 3  # 02:30 in Tokyo
    assert added.next_run_time == added.upcoming_run_times[0]
    assert datetime.now(UTC) < times[0] < times[1] < times[2]
    assert operation.schedule(control.client, "nightly") == added


def test_a_schedule_that_is_not_enabled_has_no_next_time_but_says_when_it_would(
    control: ControlPlane,
) -> None:
    added = add(control, is_enabled=False)
    assert not added.HasField("next_run_time")
    assert len(added.upcoming_run_times) == 3


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"cron": "61 2 * * *"}, "minute 61 is out of range; give 0 to 59."),
        ({"cron": ""}, "cron is missing"),
        ({"action": "ACTION_UNSPECIFIED"}, "action is missing"),
        ({"action": 99}, "knows no Action with number 99"),
        ({"time_zone": "Mars/Olympus"}, "'Mars/Olympus' is no time zone"),
        ({"library": "photos"}, "is not a name of the form libraries/holiday-photos"),
        ({"action": "ACTION_SWEEP", "library": "libraries/photos"}, "sweep has no library"),
    ],
)
def test_what_a_schedule_cannot_say_is_refused(
    control: ControlPlane, fields: dict[str, Any], complaint: str
) -> None:
    control.library("photos")
    error = refused_creation(control, **fields)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert complaint in error.text


@pytest.mark.parametrize("name", ["", "Nightly", "-a", "a/b", "x" * 64, "a\x1b"])
def test_a_name_that_is_none_is_refused(control: ControlPlane, name: str) -> None:
    error = refused_creation(control, name)
    assert (error.code, "is no name of a schedule" in error.text) == (
        StatusCode.INVALID_ARGUMENT,
        True,
    )


def test_a_schedule_of_an_unknown_library_is_refused(control: ControlPlane) -> None:
    error = refused_creation(control, library="libraries/nowhere")
    assert (error.code, "no library 'nowhere'" in error.text) == (StatusCode.NOT_FOUND, True)


def test_of_schedules_of_one_name_added_at_once_one_comes_into_being(
    control: ControlPlane,
) -> None:
    answers, refusals = at_once(*[lambda: add(control)] * 4)
    assert len(answers) == 1
    assert {error.code for error in refusals} == {StatusCode.ALREADY_EXISTS}
    assert refusals[0].metadata == {"schedule": "schedules/nightly"}


def test_schedules_are_listed_page_by_page(control: ControlPlane) -> None:
    for number in range(5):
        add(control, f"nightly-{number}")
    listed, token = [], None
    while token != "":
        request = pb.ListSchedulesRequest(page_size=3, page_token=token or "")
        page = control.client.schedule_service.ListSchedules(request)
        assert len(page.schedules) <= 3
        listed += [one.name for one in page.schedules]
        token = page.next_page_token
    assert len(listed) == 11
    assert listed == sorted(set(listed))


def test_only_what_the_mask_names_is_changed(control: ControlPlane) -> None:
    library = control.library("photos")
    before = add(control, library=library)
    changed = operation.change_schedule(
        control.client, "nightly", cron="0 5 * * *", time_zone="Asia/Tokyo"
    )
    assert (changed.cron, changed.time_zone, changed.library) == (
        "0 5 * * *",
        "Asia/Tokyo",
        library,
    )
    assert changed.next_run_time.ToDatetime(UTC).hour == 20
    every = operation.change_schedule(control.client, "nightly", library="")
    assert (every.library, every.next_run_time) == ("", changed.next_run_time)
    assert every.create_time == before.create_time


def test_enabling_finds_the_next_time_anew(control: ControlPlane) -> None:
    add(control)
    disabled = operation.change_schedule(control.client, "nightly", is_enabled=False)
    assert not disabled.HasField("next_run_time")
    enabled = operation.change_schedule(control.client, "nightly", is_enabled=True)
    assert enabled.next_run_time == enabled.upcoming_run_times[0]


@pytest.mark.parametrize(
    ("mask", "complaint"),
    [
        ([], "update_mask is empty"),
        (["last_run_time"], "'last_run_time' cannot be changed; the mask may name action"),
        (["cron"], "The mask names cron, but the schedule has no value for it."),
    ],
)
def test_a_mask_that_makes_no_sense_is_refused(
    control: ControlPlane, mask: list[str], complaint: str
) -> None:
    add(control)
    request = pb.UpdateScheduleRequest(schedule=pb.Schedule(name="schedules/nightly"))
    request.update_mask.paths.extend(mask)
    error = refusal(control.client.schedule_service.UpdateSchedule, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert complaint in error.text


def test_a_wrong_change_changes_nothing(control: ControlPlane) -> None:
    before = add(control)
    schedule = pb.Schedule(name=before.name, cron="99 * * * *", time_zone="Asia/Tokyo")
    request = pb.UpdateScheduleRequest(schedule=schedule)
    request.update_mask.paths.extend(["time_zone", "cron"])
    assert "minute 99" in refusal(control.client.schedule_service.UpdateSchedule, request).text
    assert operation.schedule(control.client, "nightly") == before


def test_a_removed_schedule_is_gone(control: ControlPlane) -> None:
    add(control)
    operation.remove_schedule(control.client, "nightly")
    service, name = control.client.schedule_service, "schedules/nightly"
    for call, request in (
        (service.GetSchedule, pb.GetScheduleRequest(name=name)),
        (service.DeleteSchedule, pb.DeleteScheduleRequest(name=name)),
        (service.RunSchedule, pb.RunScheduleRequest(name=name)),
    ):
        error = refusal(call, request)
        assert error.code is StatusCode.NOT_FOUND
        assert "There is no schedule 'nightly'" in error.text


def test_a_run_now_names_its_job_and_a_second_is_refused(control: ControlPlane) -> None:
    library = control.library("photos")
    before = add(control, library=library, is_enabled=False)
    begun = operation.run_schedule(control.client, "nightly")
    assert begun.last_outcome == pb.Schedule.OUTCOME_RUNNING
    assert not begun.HasField("next_run_time")
    assert begun.upcoming_run_times == before.upcoming_run_times
    (job,) = control.client.jobs()
    assert (begun.last_job, job.library) == (job.name, library)
    run = control.client.schedule_service.RunSchedule
    error = refusal(run, pb.RunScheduleRequest(name="schedules/nightly"))
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert "still under way" in error.text
    change = pb.UpdateScheduleRequest(
        schedule=pb.Schedule(name="schedules/nightly", action="ACTION_VERIFY"),
        update_mask={"paths": ["action"]},
    )
    error = refusal(control.client.schedule_service.UpdateSchedule, change)
    assert error.code is StatusCode.FAILED_PRECONDITION


def test_a_run_now_whose_place_is_taken_is_refused_and_leaves_no_trace(
    control: ControlPlane,
) -> None:
    active = control.client.scan(control.library("photos"))
    before = add(control)
    run = control.client.schedule_service.RunSchedule
    error = refusal(run, pb.RunScheduleRequest(name="schedules/nightly"))
    assert (error.reason, error.metadata) == ("ACTIVE_JOB_EXISTS", {"job": active.name})
    assert operation.schedule(control.client, "nightly") == before


def test_a_schedule_whose_time_zone_this_machine_does_not_know_is_shown(
    control: ControlPlane,
) -> None:
    add(control)
    with control.database.control.write() as conn:
        conn.execute(text("UPDATE schedules SET time_zone = 'Mars/Olympus'"))
    shown = operation.schedule(control.client, "nightly")
    assert (shown.time_zone, len(shown.upcoming_run_times)) == ("Mars/Olympus", 0)
