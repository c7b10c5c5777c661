"""AuditService: who called what that changes something."""

import grpc

from control_plane.services import paging, wire
from control_plane.store import audit
from mediaplane.identity import caller
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.v1 import audit_service_pb2 as pb
from mediaplane.v1.audit_service_pb2_grpc import AuditServiceServicer
from mediaplane.v1.token_service_pb2 import Role


class AuditService(AuditServiceServicer):
    """The audit log of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ListAuditEntries(
        self, request: pb.ListAuditEntriesRequest, context: grpc.ServicerContext
    ) -> pb.ListAuditEntriesResponse:
        limit, before = paging.size(request.page_size), paging.decode_id(request.page_token)
        tenant_id = caller().tenant_id
        with self._database.read() as conn:
            rows = audit.page(conn, limit=limit + 1, before_id=before, tenant_id=tenant_id)
        page, tail = paging.split(rows, limit)
        return pb.ListAuditEntriesResponse(
            entries=[_entry(row) for row in page], next_page_token=str(tail["id"]) if tail else ""
        )


def _entry(row: Row) -> pb.AuditEntry:
    return pb.AuditEntry(
        name=f"auditEntries/{row['id']}",
        call_time=wire.time(row["called_at"]),
        caller=row["caller"],
        role=wire.to_enum(Role, row["role"]),
        tenant=row["tenant_id"] or "",
        peer=wire.to_enum(pb.AuditEntry.Peer, row["peer"]),
        method=row["method"],
        resource=row["resource"],
        code=row["code"],
    )
