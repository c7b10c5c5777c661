"""Who may call what: one rule for every method of both planes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.protobuf import descriptor_pool

from mediaplane.errors import PermissionDenied
from mediaplane.identity import Caller
from mediaplane.protocol.values import Role

PACKAGE = "mediaplane.v1"
# A worker is not on this ladder: it may call what is open to workers, whatever the least role.
_LADDER = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)


@dataclass(frozen=True)
class Rule:
    """What a caller must be to call a method."""

    least: Role
    # What changes something stands in the audit log.
    changes: bool = False
    # About the installation and not about any tenant's things: not for a caller of one tenant.
    is_shared: bool = False
    is_for_workers: bool = False

    def admits(self, caller: Caller) -> bool:
        """Tell whether a caller may call the method."""
        if self.is_shared and caller.tenant_id is not None:
            return False
        if caller.role is Role.WORKER:
            return self.is_for_workers
        return _LADDER.index(caller.role) >= _LADDER.index(self.least)


_SEE = Rule(Role.VIEWER)
_WORK = Rule(Role.OPERATOR, changes=True)
_DECIDE = Rule(Role.ADMIN, changes=True)

_SERVICES: Mapping[str, Mapping[str, Rule]] = {
    "AssetService": {
        "ListAssets": _SEE,
        "GetAsset": _SEE,
        "ListFrames": _SEE,
        "RetryAsset": _WORK,
        "RetryAssets": _WORK,
        "GetPipelineStatus": _SEE,
    },
    "AuditService": {
        "ListAuditEntries": Rule(Role.ADMIN),
    },
    "ContentService": {
        "ReadOriginal": _SEE,
        "ReadThumbnail": _SEE,
        "ReadRendition": _SEE,
        "ReadFrame": _SEE,
    },
    "DataPlaneService": {
        "GetStatus": Rule(Role.VIEWER, is_shared=True, is_for_workers=True),
        # It tells what lies where on the file system, for whoever adds a library.
        "ProbeRoot": Rule(Role.ADMIN, is_shared=True),
    },
    "DuplicateService": {
        "ListDuplicateGroups": _SEE,
        "ListDuplicateFiles": _SEE,
        "VerifyDuplicateGroups": _WORK,
    },
    "JobService": {
        "CreateJob": _WORK,
        "BatchCreateJobs": _WORK,
        "GetJob": _SEE,
        "ListJobs": _SEE,
        "CancelJob": _WORK,
        "RetryJob": _WORK,
        "WatchJobs": _SEE,
        "ListJobItems": _SEE,
        "ListEvents": _SEE,
    },
    "LibraryService": {
        # Whoever gives a tenant a folder of the machine gives it all that can be reached there.
        "CreateLibrary": Rule(Role.ADMIN, changes=True, is_shared=True),
        "GetLibrary": _SEE,
        "ListLibraries": _SEE,
        "UpdateLibrary": _DECIDE,
        "DeleteLibrary": _DECIDE,
        "RestoreLibrary": _DECIDE,
        "PurgeLibrary": _DECIDE,
        "ScanLibrary": _WORK,
        "HashLibrary": _WORK,
        "ListFiles": _SEE,
        "ListScanErrors": _SEE,
    },
    "MaintenanceService": {
        "GetStatistics": _SEE,
        "GetControlPlaneStatus": Rule(Role.VIEWER, is_shared=True, is_for_workers=True),
        "RequestCheckpoint": Rule(Role.OPERATOR, changes=True, is_shared=True),
        "GetCheckpoint": Rule(Role.VIEWER, is_shared=True),
        "ListCheckpoints": Rule(Role.VIEWER, is_shared=True),
    },
    "ScheduleService": {
        "ListSchedules": _SEE,
        "GetSchedule": _SEE,
        "CreateSchedule": _DECIDE,
        "UpdateSchedule": _DECIDE,
        "DeleteSchedule": _DECIDE,
        "RunSchedule": _WORK,
    },
    "ThumbnailService": {
        "RequestThumbnail": _WORK,
        "BatchRequestThumbnails": _WORK,
        "GetThumbnail": _SEE,
        "ListThumbnails": _SEE,
        "ScheduleCleanup": _WORK,
        "GetCleanup": _SEE,
    },
    "TokenService": {
        "CreateToken": _DECIDE,
        "ListTokens": Rule(Role.ADMIN),
        "RevokeToken": _DECIDE,
    },
    "WorkerService": {
        "ListWorkers": Rule(Role.VIEWER, is_shared=True, is_for_workers=True),
        "CommandWorker": Rule(Role.OPERATOR, changes=True, is_shared=True),
    },
}

# By the path of a call: '/mediaplane.v1.JobService/CreateJob'.
RULES: Mapping[str, Rule] = {
    f"/{PACKAGE}.{service}/{method}": rule
    for service, methods in _SERVICES.items()
    for method, rule in methods.items()
}


def check(caller: Caller, method: str) -> None:
    """Refuse a method that a caller may not call, and one that has no rule."""
    rule = RULES.get(method)
    if rule is not None and rule.admits(caller):
        return
    called = method.rpartition("/")[2]
    if rule is not None and rule.is_shared and caller.tenant_id is not None:
        raise PermissionDenied(
            f"{called} is about the whole installation, and you see one tenant of it; ask for a"
            " token of every tenant."
        )
    need = f"the role {rule.least}" if rule else "a rule that allows it"
    raise PermissionDenied(
        f"{called} needs {need}, and you have the role {caller.role}; ask for a token that has it."
    )


def missing(services: Iterable[str]) -> list[str]:
    """Return the methods of services that have no rule."""
    pool = descriptor_pool.Default()
    paths = (
        f"/{service}/{method.name}"
        for service in services
        for method in pool.FindServiceByName(service).methods
    )
    return [path for path in paths if path not in RULES]
