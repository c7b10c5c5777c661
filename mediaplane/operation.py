"""What a client asks to operate an installation: schedules, tokens, the audit log, checkpoints."""

from collections.abc import Iterator
from typing import Any

from mediaplane.client import Client, pages, resource
from mediaplane.v1 import audit_service_pb2 as audit_v1
from mediaplane.v1 import maintenance_service_pb2 as maintenance_v1
from mediaplane.v1 import schedule_service_pb2 as schedules_v1
from mediaplane.v1 import token_service_pb2 as tokens_v1


def schedules(client: Client, limit: int | None = None) -> Iterator[schedules_v1.Schedule]:
    """All schedules, by name."""
    request = schedules_v1.ListSchedulesRequest()
    return pages(client.schedule_service.ListSchedules, request, "schedules", limit)


def schedule(client: Client, name: str) -> schedules_v1.Schedule:
    """One schedule."""
    request = schedules_v1.GetScheduleRequest(name=resource("schedules", name))
    return client.schedule_service.GetSchedule(request)


def add_schedule(client: Client, name: str, **settings: Any) -> schedules_v1.Schedule:
    """Add a schedule."""
    schedule = schedules_v1.Schedule(**settings)
    request = schedules_v1.CreateScheduleRequest(schedule=schedule, schedule_id=name)
    return client.schedule_service.CreateSchedule(request)


def change_schedule(client: Client, name: str, **settings: Any) -> schedules_v1.Schedule:
    """Change settings of a schedule."""
    schedule = schedules_v1.Schedule(name=resource("schedules", name), **settings)
    request = schedules_v1.UpdateScheduleRequest(schedule=schedule)
    request.update_mask.paths.extend(settings)
    return client.schedule_service.UpdateSchedule(request)


def remove_schedule(client: Client, name: str) -> None:
    """Remove a schedule."""
    request = schedules_v1.DeleteScheduleRequest(name=resource("schedules", name))
    client.schedule_service.DeleteSchedule(request)


def run_schedule(client: Client, name: str) -> schedules_v1.Schedule:
    """Run a schedule now."""
    request = schedules_v1.RunScheduleRequest(name=resource("schedules", name))
    return client.schedule_service.RunSchedule(request)


def create_token(
    client: Client,
    name: str,
    role: str,
    tenant: str = "",
    lifetime_seconds: float | None = None,
    *,
    never_expires: bool = False,
) -> tokens_v1.CreateTokenResponse:
    """Make a token; role by its short lowercase name."""
    token = tokens_v1.Token(display_name=name, role=f"ROLE_{role.upper()}", tenant=tenant)
    request = tokens_v1.CreateTokenRequest(token=token, never_expires=never_expires)
    if lifetime_seconds is not None:
        request.lifetime.FromNanoseconds(round(lifetime_seconds * 1e9))
    return client.token_service.CreateToken(request)


def tokens(client: Client, limit: int | None = None) -> Iterator[tokens_v1.Token]:
    """All tokens, without what lets their bearers in."""
    return pages(client.token_service.ListTokens, tokens_v1.ListTokensRequest(), "tokens", limit)


def revoke_token(client: Client, token: str) -> tokens_v1.Token:
    """Put a token out of use."""
    request = tokens_v1.RevokeTokenRequest(name=resource("tokens", token))
    return client.token_service.RevokeToken(request)


def audit_entries(client: Client, limit: int | None = None) -> Iterator[audit_v1.AuditEntry]:
    """Newest first."""
    request = audit_v1.ListAuditEntriesRequest()
    return pages(client.audit_service.ListAuditEntries, request, "entries", limit)


def request_checkpoint(
    client: Client, mode: str, *, force: bool = False, request_id: str = ""
) -> maintenance_v1.Checkpoint:
    """Ask for a checkpoint, by the short lowercase name of its mode."""
    request = maintenance_v1.RequestCheckpointRequest(
        mode=f"MODE_{mode.upper()}", force=force, request_id=request_id
    )
    return client.maintenance_service.RequestCheckpoint(request)


def checkpoint(client: Client, checkpoint: str) -> maintenance_v1.Checkpoint:
    """One checkpoint."""
    request = maintenance_v1.GetCheckpointRequest(name=resource("checkpoints", checkpoint))
    return client.maintenance_service.GetCheckpoint(request)


def checkpoints(client: Client, limit: int | None = None) -> Iterator[maintenance_v1.Checkpoint]:
    """Newest first."""
    request = maintenance_v1.ListCheckpointsRequest()
    return pages(client.maintenance_service.ListCheckpoints, request, "checkpoints", limit)
