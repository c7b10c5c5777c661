"""A schedule that is due runs: once, in order, and with a reason when it does not."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from sqlalchemy import event, insert, text

from control_plane.policy import admission, runs, trash
from control_plane.store.schedules import waiting
from mediaplane.errors import FailedPrecondition
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import schedules
from mediaplane.protocol.values import JobKind, Plane
from mediaplane.protocol.versions import version_of
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, Rows
from tests.support.schedules import Calendar
from tests.support.schedules import calendar as calendar

RACERS = 6
ROUNDS = 8


def test_a_schedule_that_is_not_due_does_nothing(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep")
    calendar.attend()
    assert calendar.jobs() == []


def test_a_due_schedule_makes_its_job_and_moves_on_to_its_next_time(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep", cron="0 3 * * *", time_zone="Asia/Tokyo")
    calendar.make_due("tidy")
    calendar.attend()
    assert calendar.jobs() == [("sweep", None, "pending")]
    schedule, now = calendar.get("tidy"), calendar.now()
    assert schedule["last_outcome"] == "running"
    assert schedule["last_run_at"] <= now < schedule["next_run_at"]
    next_run = datetime.fromtimestamp(schedule["next_run_at"] / 1000, UTC)
    assert (next_run.hour, next_run.minute, next_run.second) == (18, 0, 0)  # three in Tokyo


def test_a_run_is_completed_when_its_job_is(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep")
    calendar.make_due("tidy")
    calendar.attend()
    job = calendar.work()
    calendar.attend()
    schedule = calendar.get("tidy")
    assert (schedule["last_outcome"], schedule["last_job_id"]) == ("completed", job["id"])


def test_a_disabled_schedule_is_never_due(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep", is_enabled=False)
    assert calendar.get("tidy")["next_run_at"] is None
    calendar.attend()
    assert calendar.jobs() == []


def test_a_rescan_of_all_goes_through_the_active_libraries_and_then_hashes(
    calendar: Calendar,
) -> None:
    for slug in ("films", "albums", "photos", "paused", "trashed"):
        calendar.library(slug)
    calendar.change("UPDATE libraries SET is_active = false WHERE slug = 'paused'")
    calendar.change("UPDATE libraries SET deleted_at = 1 WHERE slug = 'trashed'")
    calendar.add("nightly", "rescan")
    calendar.make_due("nightly")
    done = []
    for _ in range(4):
        calendar.attend()
        job = calendar.work()
        done.append((job["kind"], job["library_id"]))
    calendar.attend()
    assert done == [("scan", "albums"), ("scan", "films"), ("scan", "photos"), ("hash", None)]
    assert len(calendar.jobs()) == 4
    assert calendar.get("nightly")["last_outcome"] == "completed"


def test_a_rescan_of_one_library_scans_and_hashes_that(calendar: Calendar) -> None:
    calendar.library("films")
    calendar.add("nightly", "rescan", library_id=calendar.library("photos"))
    calendar.make_due("nightly")
    for _ in range(2):
        calendar.attend()
        calendar.work()
    calendar.attend()
    done = [("scan", "photos", "completed"), ("hash", "photos", "completed")]
    assert calendar.jobs() == done


def test_a_run_goes_on_after_a_job_that_failed_and_tells_of_it(calendar: Calendar) -> None:
    calendar.library("films")
    calendar.library("photos")
    calendar.add("monthly", "verify")
    calendar.make_due("monthly")
    calendar.attend()
    job = calendar.work("fail", error_code="io_error", error_message="The disk is on fire.")
    calendar.attend()
    assert calendar.work()["library_id"] == "photos"
    calendar.attend()
    schedule = calendar.get("monthly")
    assert schedule["last_outcome"] == "failed"
    assert schedule["last_error"] == f"Job {job['id']} (verify) is failed. The disk is on fire."


def test_a_run_without_an_active_library_is_skipped_with_a_reason(calendar: Calendar) -> None:
    calendar.add("nightly", "rescan")
    calendar.make_due("nightly")
    calendar.attend()
    schedule = calendar.get("nightly")
    assert "No library is active" in schedule["last_skip_reason"]
    assert (schedule["last_outcome"], schedule["last_run_at"]) == ("none", None)


def test_a_run_whose_place_is_taken_is_skipped_and_the_job_in_it_named(calendar: Calendar) -> None:
    calendar.library("photos")
    calendar.add("nightly", "rescan")
    with calendar.database.control.write() as conn:
        active = admission.create(conn, admission.Wanted(JobKind.HASH))
    calendar.make_due("nightly")
    calendar.attend()
    schedule = calendar.get("nightly")
    assert f"Job {active['id']} (hash) is pending" in schedule["last_skip_reason"]
    assert schedule["next_run_at"] > calendar.now()
    assert len(calendar.jobs()) == 1


def test_a_run_under_way_waits_for_its_place_instead(calendar: Calendar) -> None:
    calendar.add("nightly", "rescan", library_id=calendar.library("photos"))
    calendar.make_due("nightly")
    calendar.attend()
    calendar.work()
    with calendar.database.control.write() as conn:
        admission.create(conn, admission.Wanted(JobKind.SCAN, "photos"))
    calendar.attend()
    assert calendar.get("nightly")["last_outcome"] == "running"
    assert [kind for kind, *_ in calendar.jobs()] == ["scan", "scan"]
    calendar.work()
    calendar.attend()
    assert [kind for kind, *_ in calendar.jobs()] == ["scan", "scan", "hash"]


def test_a_run_is_skipped_while_the_one_before_is_under_way(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep")
    calendar.make_due("tidy")
    calendar.attend()
    calendar.make_due("tidy")
    calendar.attend()
    schedule = calendar.get("tidy")
    watch = f"`mediaplane job watch {schedule['last_job_id']}`"
    reason = f"The run before is still under way; watch it with {watch}."
    assert schedule["last_skip_reason"] == reason
    assert len(calendar.jobs()) == 1
    calendar.work()
    calendar.attend()
    assert calendar.get("tidy")["last_outcome"] == "completed"


def test_however_many_runs_were_missed_one_is_made_up_for(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep", cron="* * * * *", missed_runs="run_once")
    calendar.make_due("tidy", late_ms=3 * 24 * 3600 * 1000)
    calendar.attend()
    calendar.work()
    calendar.attend()
    assert len(calendar.jobs()) == 1
    assert calendar.get("tidy")["next_run_at"] > calendar.now()


def test_missed_runs_are_left_out_when_the_schedule_says_so(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep", missed_runs="skip")
    due_at = calendar.make_due("tidy", late_ms=runs.MISSED_MS + 60_000)
    calendar.attend()
    assert calendar.jobs() == []
    schedule = calendar.get("tidy")
    then = datetime.fromtimestamp(due_at / 1000, UTC)
    missed = f"No control plane was there at {then:%Y-%m-%d %H:%M} UTC."
    assert schedule["last_skip_reason"] == missed
    assert schedule["next_run_at"] > calendar.now()


def test_a_run_that_is_a_moment_late_is_not_missed(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep", missed_runs="skip")
    calendar.make_due("tidy", late_ms=runs.MISSED_MS // 4)
    calendar.attend()
    assert len(calendar.jobs()) == 1


def test_a_schedule_whose_time_zone_is_gone_is_disabled_and_says_so(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep")
    calendar.change("UPDATE schedules SET time_zone = 'Mars/Olympus'")
    calendar.make_due("tidy")
    calendar.attend()
    schedule = calendar.get("tidy")
    assert (schedule["is_enabled"], schedule["next_run_at"]) == (False, None)
    assert "'Mars/Olympus' is no time zone" in schedule["last_skip_reason"]
    assert calendar.jobs() == []


def test_a_schedule_that_breaks_leaves_the_others_their_turn(calendar: Calendar) -> None:
    calendar.add("broken", "cleanup")
    calendar.add("tidy", "sweep")
    calendar.change(
        "UPDATE schedules SET last_outcome = 'running', run_position = 'nowhere'"
        " WHERE name = 'broken'"
    )
    calendar.make_due("tidy")
    with pytest.raises(ValueError, match="nowhere"):
        calendar.attend()
    assert calendar.jobs() == [("sweep", None, "pending")]


def test_retention_forgets_old_jobs_bite_after_bite(calendar: Calendar) -> None:
    with calendar.database.control.write() as conn:
        rows = Rows(conn)
        for _ in range(450):
            rows.add("jobs", status="completed", created_at=1, finished_at=1)
    calendar.add("forget", "retention")
    calendar.make_due("forget")
    commits: list[object] = []
    event.listen(calendar.database.control.engine, "commit", commits.append)
    calendar.attend(retention_days=0)
    assert len(calendar.jobs()) == 450
    calendar.make_due("forget")
    commits.clear()
    calendar.attend(retention_days=30)
    assert calendar.jobs() == []
    assert len(commits) >= 3
    assert calendar.get("forget")["last_outcome"] == "completed"


def test_groups_that_show_files_as_they_are_no_longer_are_cleaned_up(calendar: Calendar) -> None:
    with calendar.database.control.write() as conn:
        rows = Rows(conn)
        for group, mtime_ns, is_missing in (
            ("current", 1, False), ("changed", 2, False), ("missing", 1, True),
        ):  # fmt: skip
            file_id = rows.add("library_files", mtime_ns=mtime_ns, is_missing=is_missing)
            version = version_of(1, 1)
            rows.add("thumbnails", file_id=file_id, file_version=version, group_key=group)
    calendar.add("clean", "cleanup")
    calendar.make_due("clean")
    calendar.attend()
    with calendar.database.control.read() as conn:
        groups = set(conn.scalars(text("SELECT group_key FROM thumbnail_cleanup_jobs")))
    assert groups == {"changed", "missing"}
    assert calendar.get("clean")["last_outcome"] == "completed"


def test_a_checkpoint_is_asked_for_where_there_is_a_log_and_else_skipped(
    calendar: Calendar,
) -> None:
    calendar.add("carry-over", "checkpoint")
    calendar.make_due("carry-over")
    calendar.attend()
    schedule = calendar.get("carry-over")
    with calendar.database.control.read() as conn:
        asked = list(conn.scalars(text("SELECT status FROM wal_maintenance_jobs")))
    if calendar.database.control.dialect == "sqlite":
        assert (asked, schedule["last_outcome"]) == (["pending"], "completed")
    else:
        assert (asked, schedule["last_outcome"]) == ([], "none")
        assert "The database is PostgreSQL" in schedule["last_skip_reason"]


def test_a_run_now_leaves_the_next_time_as_it_is(calendar: Calendar) -> None:
    calendar.add("tidy", "sweep")
    before = calendar.get("tidy")["next_run_at"]
    calendar.run("tidy")
    assert calendar.jobs() == [("sweep", None, "pending")]
    assert calendar.get("tidy")["next_run_at"] == before
    with pytest.raises(FailedPrecondition, match="The run before is still under way"):
        calendar.run("tidy")


def test_the_schedules_of_a_purged_library_go_with_it(calendar: Calendar) -> None:
    calendar.add("nightly", "rescan", library_id=calendar.library("photos"))
    calendar.add("tidy", "sweep")
    with calendar.database.control.write() as conn:
        trash.delete(conn, None, "photos")
    calendar.make_due("nightly")
    calendar.attend()
    assert "'photos' is in the trash" in calendar.get("nightly")["last_skip_reason"]
    with calendar.database.control.write() as conn:
        assert trash.purge(conn, None, "photos").is_gone
    with calendar.database.control.read() as conn:
        assert list(conn.scalars(text("SELECT name FROM schedules"))) == ["tidy"]


def test_of_many_that_look_at_once_one_begins_the_run(
    calendar: Calendar, database: Databases
) -> None:
    calendar.add("tidy", "sweep")
    start = threading.Barrier(RACERS)

    def look(own: Database) -> None:
        start.wait()
        runs.attend(own, 30)

    with ExitStack() as stack, ThreadPoolExecutor(RACERS) as pool:
        racers = [Database(database.url, Plane.CONTROL) for _ in range(RACERS)]
        for racer in racers:
            stack.callback(racer.close)
        for number in range(1, ROUNDS + 1):
            calendar.make_due("tidy")
            list(pool.map(look, racers))
            assert len(calendar.jobs()) == number
            calendar.work()
            calendar.attend()
            assert calendar.get("tidy")["last_outcome"] == "completed"
    assert calendar.get("tidy")["last_skip_reason"] is None


def test_a_look_for_what_is_due_reads_indexes_alone(calendar: Calendar) -> None:
    with calendar.database.control.write() as conn:
        usual = {"action": "sweep", "cron": "0 3 * * *", "is_enabled": True}
        conn.execute(
            insert(schedules),
            [
                usual | {"name": f"later-{number}", "next_run_at": FAR_AHEAD + number}
                for number in range(2000)
            ],
        )
        conn.execute(text("ANALYZE"))
        explain = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
        asked: list[str] = []
        event.listen(conn, "before_cursor_execute", lambda *given: asked.append(given[2]))
        assert waiting(conn) == []
        lines = conn.exec_driver_sql(f"{explain} {asked[-1]}").all()
    plan = "\n".join(str(line[-1]) for line in lines)
    assert {"ix_schedules_due", "ix_schedules_running"} <= set(plan.replace(" ", "\n").split())
    assert "Seq Scan on schedules" not in plan
