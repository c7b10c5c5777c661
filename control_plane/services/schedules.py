"""ScheduleService: what is done again and again, and how it went."""

from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import Connection

from control_plane.policy import runs
from control_plane.policy import schedules as rules
from control_plane.services import names, paging, wire
from control_plane.store import schedules
from mediaplane.errors import InvalidArgument
from mediaplane.identity import caller
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.v1 import schedule_service_pb2 as pb
from mediaplane.v1.schedule_service_pb2_grpc import ScheduleServiceServicer

_UPCOMING = 3
# Fields that a caller may set, and their columns.
_COLUMNS = {
    "action": "action",
    "library": "library_id",
    "cron": "cron",
    "time_zone": "time_zone",
    "missed_runs": "missed_runs",
    "is_enabled": "is_enabled",
}


class ScheduleService(ScheduleServiceServicer):
    """The schedules of this installation."""

    def __init__(self, database: Database, retention_days: float) -> None:
        self._database = database
        self._retention_days = retention_days

    def ListSchedules(
        self, request: pb.ListSchedulesRequest, context: grpc.ServicerContext
    ) -> pb.ListSchedulesResponse:
        limit, token = paging.size(request.page_size), request.page_token
        after = paging.decode(token, {"schedule": str})["schedule"] if token else ""
        with self._database.read() as conn:
            rows = schedules.page(conn, caller().tenant_id, limit=limit + 1, after_name=after)
            now = database_time(conn)
        page, tail = paging.split(rows, limit)
        return pb.ListSchedulesResponse(
            schedules=[_message(row, now) for row in page],
            next_page_token=paging.encode({"schedule": tail["name"]}) if tail else "",
        )

    def GetSchedule(
        self, request: pb.GetScheduleRequest, context: grpc.ServicerContext
    ) -> pb.Schedule:
        with self._database.read() as conn:
            return _shown(conn, rules.get(conn, caller().tenant_id, names.schedule(request.name)))

    def CreateSchedule(
        self, request: pb.CreateScheduleRequest, context: grpc.ServicerContext
    ) -> pb.Schedule:
        columns = _columns(request.schedule)
        with self._database.write() as conn:
            return _shown(
                conn, rules.create(conn, caller().tenant_id, request.schedule_id, columns)
            )

    def UpdateSchedule(
        self, request: pb.UpdateScheduleRequest, context: grpc.ServicerContext
    ) -> pb.Schedule:
        name, columns = names.schedule(request.schedule.name), _masked(request)
        with self._database.write() as conn:
            return _shown(conn, rules.change(conn, caller().tenant_id, name, columns))

    def DeleteSchedule(
        self, request: pb.DeleteScheduleRequest, context: grpc.ServicerContext
    ) -> pb.DeleteScheduleResponse:
        with self._database.write() as conn:
            rules.remove(conn, caller().tenant_id, names.schedule(request.name))
        return pb.DeleteScheduleResponse()

    def RunSchedule(
        self, request: pb.RunScheduleRequest, context: grpc.ServicerContext
    ) -> pb.Schedule:
        name = names.schedule(request.name)
        with self._database.write() as conn:
            return _shown(conn, runs.begin(conn, caller().tenant_id, name, self._retention_days))


def _columns(schedule: pb.Schedule) -> dict[str, Any]:
    """Return what a caller may set, by column; None where the request leaves it open."""
    return {
        "action": wire.from_enum(pb.Schedule.Action, schedule.action),
        "library_id": names.library_slug(schedule.library) if schedule.library else None,
        "cron": schedule.cron or None,
        "time_zone": schedule.time_zone or None,
        "missed_runs": wire.from_enum(pb.Schedule.MissedRuns, schedule.missed_runs),
        "is_enabled": schedule.is_enabled if schedule.HasField("is_enabled") else None,
    }


def _masked(request: pb.UpdateScheduleRequest) -> dict[str, Any]:
    given, columns = _columns(request.schedule), {}
    for field in request.update_mask.paths:
        if field not in _COLUMNS:
            raise InvalidArgument(
                f"{field[:100]!r} cannot be changed; the mask may name {', '.join(_COLUMNS)}."
            )
        column = _COLUMNS[field]
        if given[column] is None and field != "library":  # without one it is for all of them
            raise InvalidArgument(f"The mask names {field}, but the schedule has no value for it.")
        columns[column] = given[column]
    if not columns:
        raise InvalidArgument(f"update_mask is empty; name one of {', '.join(_COLUMNS)}.")
    return columns


def _shown(conn: Connection, row: Row) -> pb.Schedule:
    return _message(row, database_time(conn))


def _message(row: Row, now: int) -> pb.Schedule:
    return pb.Schedule(
        name=f"schedules/{row['name']}",
        action=wire.to_enum(pb.Schedule.Action, row["action"]),
        library=f"libraries/{row['library_id']}" if row["library_id"] else "",
        cron=row["cron"],
        time_zone=row["time_zone"],
        missed_runs=wire.to_enum(pb.Schedule.MissedRuns, row["missed_runs"]),
        is_enabled=row["is_enabled"],
        next_run_time=wire.time(row["next_run_at"]),
        upcoming_run_times=_upcoming(row, now),
        last_run_time=wire.time(row["last_run_at"]),
        last_outcome=wire.to_enum(pb.Schedule.Outcome, row["last_outcome"]),
        last_error=row["last_error"] or "",
        last_job=f"jobs/{row['last_job_id']}" if row["last_job_id"] else "",
        last_skip_time=wire.time(row["last_skip_at"]),
        last_skip_reason=row["last_skip_reason"] or "",
        create_time=wire.time(row["created_at"]),
        update_time=wire.time(row["updated_at"]),
    )


def _upcoming(row: Row, now: int) -> list[Timestamp]:
    try:
        due = rules.upcoming(row, now, _UPCOMING)
    except InvalidArgument:
        return []  # this machine does not know its time zone; the rest can be shown
    return [Timestamp(seconds=moment // 1000) for moment in due]
