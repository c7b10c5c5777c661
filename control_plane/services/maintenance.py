"""MaintenanceService: how much there is, and what this control plane is."""

from time import time_ns

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from control_plane.services import wire
from control_plane.store import jobs, statistics
from mediaplane import __version__
from mediaplane.identity import caller
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import JobStatus
from mediaplane.v1 import maintenance_service_pb2 as pb
from mediaplane.v1.job_service_pb2 import Job
from mediaplane.v1.maintenance_service_pb2_grpc import MaintenanceServiceServicer


class MaintenanceService(MaintenanceServiceServicer):
    """Figures about the whole installation."""

    def __init__(self, database: Database) -> None:
        self._database = database
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


def _now() -> Timestamp:
    now = Timestamp()
    now.FromNanoseconds(time_ns())
    return now
