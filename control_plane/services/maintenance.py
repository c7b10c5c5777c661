"""MaintenanceService: how much there is, what this control plane is, and checkpoints."""

from time import time_ns

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from control_plane.policy import checkpoints as rules
from control_plane.services import names, paging, wire
from control_plane.store import checkpoints, jobs, statistics
from mediaplane import __version__
from mediaplane.identity import caller
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import CheckpointMode, JobStatus
from mediaplane.v1 import maintenance_service_pb2 as pb
from mediaplane.v1.job_service_pb2 import Job
from mediaplane.v1.maintenance_service_pb2_grpc import MaintenanceServiceServicer


class MaintenanceService(MaintenanceServiceServicer):
    """Figures about the whole installation, and what keeps its database in order."""

    def __init__(self, database: Database, checkpoint_interval_seconds: float) -> None:
        self._database = database
        self._checkpoint_interval_seconds = checkpoint_interval_seconds
        self._started_at = _now()

    def GetStatistics(
        self, request: pb.GetStatisticsRequest, context: grpc.ServicerContext
    ) -> pb.Statistics:
        tenant_id = caller().tenant_id
        with self._database.read() as conn:
            groups = statistics.groups(conn, tenant_id)
            libraries = statistics.libraries(conn, tenant_id)
            by_status = jobs.count_by_status(conn, tenant_id)
            # How large it is says what the others have.
            database = statistics.database(conn) if tenant_id is None else None
        return pb.Statistics(
            files=sum(row["files"] for row in libraries),
            bytes=sum(row["bytes"] for row in libraries),
            groups=groups["groups"],
            duplicate_files=int(groups["duplicate_files"]),
            grouped_files=int(groups["grouped_files"]),
            reclaimable_bytes=int(groups["reclaimable_bytes"]),
            errors=sum(row["errors"] for row in libraries),
            libraries=[
                pb.LibraryStatistics(
                    library=f"libraries/{row['slug']}",
                    files=row["files"],
                    bytes=row["bytes"],
                    errors=row["errors"],
                )
                for row in libraries
            ],
            jobs_by_state=[
                pb.JobStateCount(state=wire.to_enum(Job.State, status), count=by_status[status])
                for status in JobStatus
                if status in by_status
            ],
            database=pb.DatabaseStatistics(dialect=self._database.dialect, **database)
            if database
            else None,
        )

    def GetControlPlaneStatus(
        self, request: pb.GetControlPlaneStatusRequest, context: grpc.ServicerContext
    ) -> pb.ControlPlaneStatus:
        return pb.ControlPlaneStatus(
            version=__version__, start_time=self._started_at, current_time=_now()
        )

    def RequestCheckpoint(
        self, request: pb.RequestCheckpointRequest, context: grpc.ServicerContext
    ) -> pb.Checkpoint:
        mode = wire.from_enum(pb.Checkpoint.Mode, request.mode) or CheckpointMode.PASSIVE
        wanted = rules.Wanted(CheckpointMode(mode), request.request_id, request.force)
        row = rules.request(self._database, wanted, self._checkpoint_interval_seconds)
        return _checkpoint(row)

    def GetCheckpoint(
        self, request: pb.GetCheckpointRequest, context: grpc.ServicerContext
    ) -> pb.Checkpoint:
        checkpoint_id = names.checkpoint_id(request.name)
        rules.require_sqlite(self._database.dialect)
        with self._database.read() as conn:
            return _checkpoint(rules.get(conn, checkpoint_id))

    def ListCheckpoints(
        self, request: pb.ListCheckpointsRequest, context: grpc.ServicerContext
    ) -> pb.ListCheckpointsResponse:
        limit, query = paging.size(request.page_size), paging.fingerprint("checkpoints")
        before = paging.decode_row(request.page_token, query)
        rules.require_sqlite(self._database.dialect)
        with self._database.read() as conn:
            rows = checkpoints.page(conn, limit=limit + 1, before_id=before)
        page, tail = paging.split(rows, limit)
        return pb.ListCheckpointsResponse(
            checkpoints=[_checkpoint(row) for row in page],
            next_page_token=paging.encode_row(tail["id"], query) if tail else "",
        )


def _checkpoint(row: Row) -> pb.Checkpoint:
    return pb.Checkpoint(
        name=f"checkpoints/{row['id']}",
        mode=wire.to_enum(pb.Checkpoint.Mode, row["requested_mode"]),
        state=wire.to_enum(pb.Checkpoint.State, row["status"]),
        execute_time=wire.time(row["execute_after"]),
        retry_count=row["retry_count"],
        retry_time=wire.time(row["retry_after"]),
        busy=row["checkpoint_busy"],
        log_frames=row["checkpoint_log_frames"],
        checkpointed_frames=row["checkpointed_frames"],
        error_code=row["error_code"] or "",
        error_message=row["error_message"] or "",
        create_time=wire.time(row["created_at"]),
        start_time=wire.time(row["started_at"]),
        end_time=wire.time(row["finished_at"]),
        request_id=row["request_id"] or "",
        worker=row["worker_id"] or "",
    )


def _now() -> Timestamp:
    now = Timestamp()
    now.FromNanoseconds(time_ns())
    return now
