"""Decides when a schedule runs, once however many control planes look, and what comes next in it.

A run is carried on by one short transaction after the other, each of which holds its schedule: who
dies in between has done nothing, and whoever looks next goes on.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from control_plane.policy import admission, checkpoints, retention
from control_plane.policy import schedules as rules
from control_plane.store import jobs, schedules, thumbnails
from mediaplane.errors import ActiveJobExists, CallerError, FailedPrecondition, InvalidArgument
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import (
    JobKind,
    JobStatus,
    MissedRuns,
    RunOutcome,
    ScheduleAction,
)

# Later than this a run was missed: nobody was there to begin it.
MISSED_MS = 60_000
# Where a rescan is after the last library; no library can be called so.
_HASHED = "#hashed"

# What a run writes to its schedule when it goes on; None when it is over.
Progress = dict[str, Any] | None


def attend(database: Database, retention_days: float) -> bool:
    """Begin what is due and carry on what is under way; tell whether there may be more at once."""
    with database.read() as conn:  # a look costs no write lock
        names = schedules.waiting(conn)
    moved, failure = False, None
    for name in names:
        try:
            moved |= _attend(database, name, retention_days)
        except Exception as error:  # noqa: BLE001 - it must not keep the others from their turn
            failure = error
    if failure is not None:
        raise failure
    return moved


def begin(conn: Connection, tenant_id: str | None, name: str, retention_days: float) -> Row:
    """Run a schedule now, whatever its time; an error says why that cannot be."""
    schedule = rules.held(conn, tenant_id, name)
    taken = schedules.take(conn, name)
    if taken is None or taken["last_outcome"] == RunOutcome.RUNNING:
        raise FailedPrecondition(_under_way(schedule), schedule=f"schedules/{name}")
    return _begin(conn, taken, retention_days)


def _attend(database: Database, name: str, retention_days: float) -> bool:
    with database.write() as conn:
        schedule = schedules.take(conn, name)
        if schedule is None:
            return False
        due_at, now = schedule["next_run_at"], database_time(conn)
        if due_at is not None and due_at <= now:
            return _take_due(conn, schedule, now, retention_days)
        if schedule["last_outcome"] == RunOutcome.RUNNING:
            return _carry_on(conn, schedule, retention_days)
    return False


def _take_due(conn: Connection, schedule: Row, now: int, retention_days: float) -> bool:
    """Move a schedule on to its next time, and begin the run that is due or say why not."""
    try:
        moved = {"next_run_at": rules.next_run(schedule, now)}
    except InvalidArgument as error:  # such as a time zone that this machine does not know
        unusable = {"is_enabled": False, "next_run_at": None}
        _skip(conn, schedule, unusable, f"{error} The schedule has been disabled.")
        return False
    late_ms = now - schedule["next_run_at"]
    if schedule["last_outcome"] == RunOutcome.RUNNING:
        _skip(conn, schedule, moved, _under_way(schedule))
    elif late_ms > MISSED_MS and schedule["missed_runs"] == MissedRuns.SKIP:
        due = datetime.fromtimestamp(schedule["next_run_at"] / 1000, UTC)
        _skip(conn, schedule, moved, f"No control plane was there at {due:%Y-%m-%d %H:%M} UTC.")
    else:
        _change(conn, schedule, moved)
        try:
            with conn.begin_nested():
                _begin(conn, schedule, retention_days)
        except CallerError as refused:
            _skip(conn, schedule, {}, str(refused))
    return True


def _skip(conn: Connection, schedule: Row, columns: dict[str, Any], reason: str) -> None:
    skipped = {"last_skip_at": database_time(conn), "last_skip_reason": reason}
    _change(conn, schedule, columns | skipped)


def _begin(conn: Connection, schedule: Row, retention_days: float) -> Row:
    started = _change(
        conn,
        schedule,
        {
            "last_run_at": database_time(conn),
            "last_outcome": RunOutcome.RUNNING,
            "last_error": None,
            "last_job_id": None,
            "run_position": None,
        },
    )
    return _advance(conn, started, retention_days)


def _carry_on(conn: Connection, schedule: Row, retention_days: float) -> bool:
    """Take the next step of a run whose last job has ended; tell whether it was taken."""
    job = jobs.get(conn, None, schedule["last_job_id"]) if schedule["last_job_id"] else None
    if job is not None and job["status"] not in JOBS.final:
        return False
    if job is not None and job["status"] != JobStatus.COMPLETED:
        schedule = _change(conn, schedule, {"last_error": _failure(job)})
    try:
        with conn.begin_nested():
            _advance(conn, schedule, retention_days)
    except ActiveJobExists:
        return False  # somebody else's, and the run waits for it
    except CallerError as refused:
        _end(conn, schedule, str(refused))
    return True


def _advance(conn: Connection, schedule: Row, retention_days: float) -> Row:
    """Do the next thing of a run, or end it when there is none."""
    action = ScheduleAction(schedule["action"])
    if action is ScheduleAction.RETENTION:
        progress = _forget(conn, retention_days)
    else:
        progress = _ACTIONS[action](conn, schedule)
    if progress is None:
        return _end(conn, schedule, schedule["last_error"])
    return _change(conn, schedule, progress)


def _end(conn: Connection, schedule: Row, error: str | None) -> Row:
    outcome = RunOutcome.FAILED if error else RunOutcome.COMPLETED
    return _change(conn, schedule, {"last_outcome": outcome, "last_error": error})


def _rescan(conn: Connection, schedule: Row) -> Progress:
    """Scan one library after the other, for only one scan may be active; then hash."""
    if schedule["run_position"] == _HASHED:
        return None
    if jobs.active_campaign(conn) is not None:  # cheaper than to try again and again meanwhile
        raise admission.occupied(conn, schedule["tenant_id"])
    slug = _next_library(conn, schedule)
    if slug is not None:
        return _admit(conn, admission.Wanted(JobKind.SCAN, slug, schedule["tenant_id"]), slug)
    wanted = admission.Wanted(JobKind.HASH, schedule["library_id"], schedule["tenant_id"])
    return _admit(conn, wanted, _HASHED)


def _verify(conn: Connection, schedule: Row) -> Progress:
    slug = _next_library(conn, schedule)
    if slug is None:
        return None
    return _admit(conn, admission.Wanted(JobKind.VERIFY, slug, schedule["tenant_id"]), slug)


def _sweep(conn: Connection, schedule: Row) -> Progress:
    if schedule["last_job_id"] is not None:
        return None
    return _admit(conn, admission.Wanted(JobKind.SWEEP), None)


def _clean_up(conn: Connection, schedule: Row) -> Progress:
    """Have groups cleaned up in which a thumbnail shows a file as it is no longer."""
    groups, last_id = thumbnails.outdated_groups(conn, int(schedule["run_position"] or 0))
    for tenant_id, group_key in groups:
        thumbnails.schedule_cleanup(conn, tenant_id, group_key, 0)
    return {"run_position": str(last_id)} if last_id is not None else None


def _forget(conn: Connection, retention_days: float) -> Progress:
    return {} if retention.forget(conn, retention_days) else None


def _checkpoint(conn: Connection, _schedule: Row) -> Progress:
    checkpoints.schedule(conn)
    return None


_ACTIONS: dict[ScheduleAction, Callable[[Connection, Row], Progress]] = {
    ScheduleAction.RESCAN: _rescan,
    ScheduleAction.VERIFY: _verify,
    ScheduleAction.SWEEP: _sweep,
    ScheduleAction.CLEANUP: _clean_up,
    ScheduleAction.CHECKPOINT: _checkpoint,
}


def _admit(conn: Connection, wanted: admission.Wanted, position: str | None) -> Progress:
    job = admission.create(conn, wanted)
    return {"last_job_id": job["id"], "run_position": position}


def _next_library(conn: Connection, schedule: Row) -> str | None:
    last = schedule["run_position"]
    if schedule["library_id"] is not None:
        return None if last else str(schedule["library_id"])
    slug = schedules.next_library(conn, schedule["tenant_id"], last or "")
    if slug is None and last is None:
        raise FailedPrecondition("No library is active; add one, or resume one that is paused.")
    return slug


def _change(conn: Connection, schedule: Row, columns: dict[str, Any]) -> Row:
    changed = schedules.change(conn, schedule["name"], columns)
    assert changed is not None  # it is taken
    return changed


def _failure(job: Row) -> str:
    why = job["error_message"] or job["skip_reason"] or ""
    return f"Job {job['id']} ({job['kind']}) is {job['status']}. {why}".strip()


def _under_way(schedule: Row) -> str:
    job = schedule["last_job_id"]
    hint = f"; watch it with `mediaplane job watch {job}`" if job else ""
    return f"The run before is still under way{hint}."
