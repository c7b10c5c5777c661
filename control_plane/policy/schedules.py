"""Decides what a schedule may say, and when it is next due."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from control_plane.policy import cron, libraries
from control_plane.store import schedules
from mediaplane.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from mediaplane.paths import display
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import DEFAULT_TENANT, RunOutcome, ScheduleAction

# What is done for each library; the rest is done for the whole installation.
OF_LIBRARIES = (ScheduleAction.RESCAN, ScheduleAction.VERIFY)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_TIMED = {"cron", "time_zone", "is_enabled"}


def create(conn: Connection, tenant_id: str | None, name: str, columns: Mapping[str, Any]) -> Row:
    """Add a schedule of who asks for it, or of its library for who sees all tenants."""
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{display(name[:100].encode('utf-8', 'surrogatepass'))!r} is no name of a schedule:"
            " use 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends."
        )
    for field in ("action", "cron"):
        if not columns.get(field):
            raise InvalidArgument(f"{field} is missing; a schedule says what is done and when.")
    usual = {"time_zone": "UTC", "is_enabled": True, "library_id": None}
    known = usual | {field: value for field, value in columns.items() if value is not None}
    _check_is_own(tenant_id, columns["action"])
    checked = _checked(conn, tenant_id, known)
    owner = tenant_id or _tenant_of(conn, checked["library_id"])
    added = schedules.add(conn, name=name, tenant_id=owner, **checked)
    if added is None and schedules.get(conn, tenant_id, name) is None:
        # It is another tenant's, of which nothing more is said.
        raise AlreadyExists(f"The name {name!r} is not available; choose another.")
    if added is None:
        raise AlreadyExists(
            f"A schedule {name!r} exists already; change it, or choose another name.",
            schedule=f"schedules/{name}",
        )
    return added


def get(conn: Connection, tenant_id: str | None, name: str) -> Row:
    """Return a schedule."""
    return _known(schedules.get(conn, tenant_id, name), name)


def held(conn: Connection, tenant_id: str | None, name: str) -> Row:
    """Return a schedule that the tenant may run and change."""
    schedule = get(conn, tenant_id, name)
    _check_is_own(tenant_id, schedule["action"])
    return schedule


def change(conn: Connection, tenant_id: str | None, name: str, columns: Mapping[str, Any]) -> Row:
    """Change what a schedule says; a run that is under way goes on as it began."""
    before = held(conn, tenant_id, name)
    work = ("action", "library_id")
    is_other_work = any(columns.get(field, before[field]) != before[field] for field in work)
    if is_other_work and before["last_outcome"] == RunOutcome.RUNNING:
        raise FailedPrecondition(
            f"A run of schedule {name!r} is under way; change what it does when that has ended."
        )
    # A schedule stays with its tenant, whoever changes it.
    _check_is_own(tenant_id, columns.get("action", before["action"]))
    checked = _checked(conn, before["tenant_id"], {**before, **columns})
    # What is due stays due, unless the change is about when.
    written = {*columns, "next_run_at"} if columns.keys() & _TIMED else {*columns}
    changed = schedules.change(conn, name, {field: checked[field] for field in written})
    return _known(changed, name)


def remove(conn: Connection, tenant_id: str | None, name: str) -> None:
    """Remove a schedule; jobs that it asked for go on."""
    held(conn, tenant_id, name)
    schedules.remove(conn, name)


def unknown(name: str) -> NotFound:
    """Return what to say of a schedule that does not exist."""
    return NotFound(f"There is no schedule {name!r}; `mediaplane schedule list` shows them.")


def next_run(schedule: Mapping[str, Any], after_ms: int) -> int:
    """Return when a schedule is due first after a time, both in milliseconds."""
    return upcoming(schedule, after_ms, 1)[0]


def upcoming(schedule: Mapping[str, Any], after_ms: int, count: int) -> list[int]:
    """Return when a schedule is due next, so many times."""
    moments = cron.upcoming(
        cron.parse(schedule["cron"]),
        cron.zone(schedule["time_zone"]),
        datetime.fromtimestamp(after_ms / 1000, UTC),
    )
    return [int(moment.timestamp() * 1000) for moment in islice(moments, count)]


def _check_is_own(tenant_id: str | None, action: str) -> None:
    if tenant_id is not None and action not in OF_LIBRARIES:
        raise PermissionDenied(
            f"The action {action} is done for all tenants; ask who runs the installation."
        )


def _tenant_of(conn: Connection, library: str | None) -> str:
    return libraries.get(conn, None, library)["tenant_id"] if library else DEFAULT_TENANT


def _checked(conn: Connection, tenant_id: str | None, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schedule says together with when it is due, if it can be so."""
    library = columns["library_id"]
    if library is not None:
        if columns["action"] not in OF_LIBRARIES:
            raise InvalidArgument(
                f"The action {columns['action']} has no library; it is done for all of them."
            )
        libraries.get(conn, tenant_id, library)
    due = next_run(columns, database_time(conn))  # also checks an expression that is not enabled
    return {**columns, "next_run_at": due if columns["is_enabled"] else None}


def _known(schedule: Row | None, name: str) -> Row:
    if schedule is None:
        raise unknown(name)
    return schedule
