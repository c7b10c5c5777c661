"""TokenService: who is let in, and as what."""

import grpc

from control_plane.policy import tokens as rules
from control_plane.services import names, paging, tenants, wire
from control_plane.store import tokens
from mediaplane.errors import InvalidArgument
from mediaplane.identity import caller
from mediaplane.protocol import audit
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import Role
from mediaplane.v1 import token_service_pb2 as pb
from mediaplane.v1.token_service_pb2_grpc import TokenServiceServicer


class TokenService(TokenServiceServicer):
    """The tokens of this installation."""

    def __init__(self, database: Database, remote_token_days: float) -> None:
        self._database = database
        self._remote_token_days = remote_token_days

    def CreateToken(
        self, request: pb.CreateTokenRequest, context: grpc.ServicerContext
    ) -> pb.CreateTokenResponse:
        role = wire.from_enum(pb.Role, request.token.role)
        if role is None:
            raise InvalidArgument(f"token.role is missing; give one of: {', '.join(Role)}.")
        seconds = request.lifetime.ToNanoseconds() / 1e9 if request.HasField("lifetime") else None
        wanted = rules.Wanted(
            request.token.display_name,
            Role(role),
            tenants.chosen(request.token.tenant),
            seconds,
            request.never_expires,
        )
        with self._database.write() as conn:
            row, secret = rules.create(conn, wanted, self._remote_token_days)
            message = _token(row)
            audit.concerns(message.name)
        return pb.CreateTokenResponse(token=message, secret=secret)

    def ListTokens(
        self, request: pb.ListTokensRequest, context: grpc.ServicerContext
    ) -> pb.ListTokensResponse:
        limit, after = paging.size(request.page_size), paging.decode_id(request.page_token)
        tenant_id = caller().tenant_id
        with self._database.read() as conn:
            rows = tokens.page(conn, limit=limit + 1, after_id=after, tenant_id=tenant_id)
        page, tail = paging.split(rows, limit)
        return pb.ListTokensResponse(
            tokens=[_token(row) for row in page], next_page_token=str(tail["id"]) if tail else ""
        )

    def RevokeToken(
        self, request: pb.RevokeTokenRequest, context: grpc.ServicerContext
    ) -> pb.Token:
        with self._database.write() as conn:
            return _token(rules.revoke(conn, names.token_id(request.name)))


def _token(row: Row) -> pb.Token:
    return pb.Token(
        name=f"tokens/{row['id']}",
        display_name=row["name"],
        role=wire.to_enum(pb.Role, row["role"]),
        tenant=row["tenant_id"] or "",
        creator=row["created_by"],
        create_time=wire.time(row["created_at"]),
        expire_time=wire.time(row["expires_at"]),
        revoke_time=wire.time(row["revoked_at"]),
        last_use_time=wire.time(row["last_used_at"]),
    )
