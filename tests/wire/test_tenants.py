"""A caller of one tenant sees nothing of another in any call of either plane, and changes nothing.

The calls come from the descriptors: one without a case here fails the first test.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import MessageToString
from grpc import StatusCode

from mediaplane import v1
from mediaplane.client import open_channel
from mediaplane.protocol.tables import metadata
from mediaplane.protocol.values import Role
from mediaplane.v1 import asset_service_pb2 as assets_pb
from mediaplane.v1 import audit_service_pb2 as audit_pb
from mediaplane.v1 import content_service_pb2 as content_pb
from mediaplane.v1 import data_plane_service_pb2 as data_pb
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from mediaplane.v1 import job_service_pb2 as jobs_pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from mediaplane.v1 import maintenance_service_pb2 as maintenance_pb
from mediaplane.v1 import schedule_service_pb2 as schedules_pb
from mediaplane.v1 import thumbnail_service_pb2 as thumbnails_pb
from mediaplane.v1 import token_service_pb2 as tokens_pb
from mediaplane.v1 import worker_service_pb2 as workers_pb
from tests.support.control import PROBE, ControlPlane, Refusal, refusal_of, serving_control
from tests.support.data import serving_data
from tests.support.databases import Databases
from tests.support.tenancy import (
    GROUP_KEY,
    OWNED,
    SHARED_CONTENT,
    UNOWNED,
    Tenant,
    dump,
    nobody,
    settle,
)
from tests.support.tokens import add_token, bearing

DATA_PLANE = ("ContentService", "DataPlaneService")
GROUP = f"duplicateGroups/blake3:{SHARED_CONTENT['content_hash'].hex()}"
Build = Callable[[Tenant], Any]


def verify_job(library: str) -> jobs_pb.CreateJobRequest:
    return jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind="JOB_KIND_VERIFY", library=library))


def probe_job() -> jobs_pb.CreateJobRequest:
    return jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind=PROBE))


def new_library(tenant: Tenant) -> libraries_pb.CreateLibraryRequest:
    library = libraries_pb.Library(
        display_name=f"{tenant.name} new", root_path=bytes(tenant.root) + b"-new"
    )
    return libraries_pb.CreateLibraryRequest(library=library)


def changed_library(tenant: Tenant) -> libraries_pb.UpdateLibraryRequest:
    library = libraries_pb.Library(name=tenant.library, sampling_limit=7)
    return libraries_pb.UpdateLibraryRequest(
        library=library, update_mask={"paths": ["sampling_limit"]}
    )


def schedule(tenant: Tenant, **more: Any) -> schedules_pb.Schedule:
    return schedules_pb.Schedule(
        action="ACTION_RESCAN", cron="0 3 * * *", library=tenant.library, **more
    )


# What names something of a tenant: NOT_FOUND to everybody else.
NAMED: dict[str, list[Build]] = {
    "AssetService/ListAssets": [
        lambda t: assets_pb.ListAssetsRequest(parent=t.library),
        lambda t: assets_pb.ListAssetsRequest(parent=t.library, state="STATE_FAILED"),
    ],
    "AssetService/GetAsset": [lambda t: assets_pb.GetAssetRequest(name=t.asset)],
    "AssetService/ListFrames": [lambda t: assets_pb.ListFramesRequest(parent=t.asset)],
    "AssetService/RetryAsset": [lambda t: assets_pb.RetryAssetRequest(name=t.asset)],
    "AssetService/RetryAssets": [lambda t: assets_pb.RetryAssetsRequest(parent=t.library)],
    "AssetService/GetPipelineStatus": [
        lambda t: assets_pb.GetPipelineStatusRequest(parent=t.library)
    ],
    "ContentService/ReadOriginal": [lambda t: content_pb.ReadOriginalRequest(name=t.file)],
    "ContentService/ReadThumbnail": [lambda t: content_pb.ReadThumbnailRequest(name=t.thumbnail)],
    "ContentService/ReadRendition": [
        lambda t: content_pb.ReadRenditionRequest(name=t.asset, rendition="RENDITION_PROXY")
    ],
    "ContentService/ReadFrame": [lambda t: content_pb.ReadFrameRequest(name=t.frame)],
    "DuplicateService/ListDuplicateGroups": [
        lambda t: duplicates_pb.ListDuplicateGroupsRequest(library=t.library)
    ],
    "JobService/CreateJob": [lambda t: verify_job(t.library)],
    "JobService/GetJob": [lambda t: jobs_pb.GetJobRequest(name=t.ended_job)],
    "JobService/CancelJob": [lambda t: jobs_pb.CancelJobRequest(name=t.waiting_job)],
    "JobService/RetryJob": [lambda t: jobs_pb.RetryJobRequest(name=t.failed_job)],
    "JobService/WatchJobs": [
        lambda t: jobs_pb.WatchJobsRequest(names=[t.ended_job]),
        lambda t: jobs_pb.WatchJobsRequest(names=[t.ended_job], after_event_id=0),
    ],
    "JobService/ListJobItems": [lambda t: jobs_pb.ListJobItemsRequest(parent=t.ended_job)],
    "JobService/ListEvents": [lambda t: jobs_pb.ListEventsRequest(parent=t.ended_job)],
    "LibraryService/GetLibrary": [lambda t: libraries_pb.GetLibraryRequest(name=t.library)],
    "LibraryService/UpdateLibrary": [changed_library],
    "LibraryService/ScanLibrary": [lambda t: libraries_pb.ScanLibraryRequest(name=t.library)],
    "LibraryService/HashLibrary": [lambda t: libraries_pb.HashLibraryRequest(name=t.library)],
    "LibraryService/ListFiles": [lambda t: libraries_pb.ListFilesRequest(parent=t.library)],
    "LibraryService/ListScanErrors": [
        lambda t: libraries_pb.ListScanErrorsRequest(parent=t.library)
    ],
    "ScheduleService/GetSchedule": [lambda t: schedules_pb.GetScheduleRequest(name=t.schedule)],
    "ScheduleService/CreateSchedule": [
        lambda t: schedules_pb.CreateScheduleRequest(schedule_id="new", schedule=schedule(t))
    ],
    "ScheduleService/UpdateSchedule": [
        lambda t: schedules_pb.UpdateScheduleRequest(
            schedule=schedule(t, name=t.schedule), update_mask={"paths": ["cron"]}
        )
    ],
    "ScheduleService/RunSchedule": [lambda t: schedules_pb.RunScheduleRequest(name=t.schedule)],
    "ScheduleService/DeleteSchedule": [
        lambda t: schedules_pb.DeleteScheduleRequest(name=t.schedule)
    ],
    "ThumbnailService/RequestThumbnail": [
        lambda t: thumbnails_pb.RequestThumbnailRequest(file=t.file)
    ],
    "ThumbnailService/BatchRequestThumbnails": [
        lambda t: thumbnails_pb.BatchRequestThumbnailsRequest(
            requests=[thumbnails_pb.RequestThumbnailRequest(file=t.file, size_px=64)]
        )
    ],
    "ThumbnailService/GetThumbnail": [
        lambda t: thumbnails_pb.GetThumbnailRequest(name=t.thumbnail)
    ],
    "ThumbnailService/ListThumbnails": [lambda t: thumbnails_pb.ListThumbnailsRequest(file=t.file)],
    "ThumbnailService/GetCleanup": [lambda t: thumbnails_pb.GetCleanupRequest(name=t.cleanup)],
    "TokenService/RevokeToken": [lambda t: tokens_pb.RevokeTokenRequest(name=t.token)],
    # Last, because they end what the others name.
    "LibraryService/RestoreLibrary": [lambda t: libraries_pb.RestoreLibraryRequest(name=t.trashed)],
    "LibraryService/PurgeLibrary": [lambda t: libraries_pb.PurgeLibraryRequest(name=t.trashed)],
    "LibraryService/DeleteLibrary": [lambda t: libraries_pb.DeleteLibraryRequest(name=t.library)],
}
# What names nothing: it is about the caller's things alone.
UNNAMED: dict[str, list[Build]] = {
    "AssetService/GetPipelineStatus": [lambda _: assets_pb.GetPipelineStatusRequest()],
    "AuditService/ListAuditEntries": [lambda _: audit_pb.ListAuditEntriesRequest()],
    "DuplicateService/ListDuplicateGroups": [
        lambda _: duplicates_pb.ListDuplicateGroupsRequest(),
        lambda _: duplicates_pb.ListDuplicateGroupsRequest(order="ORDER_RECLAIMABLE"),
        lambda _: duplicates_pb.ListDuplicateGroupsRequest(media_type="TYPE_IMAGE"),
    ],
    "DuplicateService/ListDuplicateFiles": [
        lambda _: duplicates_pb.ListDuplicateFilesRequest(parent=GROUP)
    ],
    "DuplicateService/VerifyDuplicateGroups": [
        lambda _: duplicates_pb.VerifyDuplicateGroupsRequest(repair=True)
    ],
    "JobService/ListJobs": [lambda _: jobs_pb.ListJobsRequest()],
    "JobService/ListEvents": [lambda _: jobs_pb.ListEventsRequest(parent="jobs/-")],
    "JobService/BatchCreateJobs": [
        lambda _: jobs_pb.BatchCreateJobsRequest(requests=[probe_job()])
    ],
    "LibraryService/ListLibraries": [
        lambda _: libraries_pb.ListLibrariesRequest(),
        lambda _: libraries_pb.ListLibrariesRequest(in_trash=True),
    ],
    "LibraryService/HashLibrary": [lambda _: libraries_pb.HashLibraryRequest(name="libraries/-")],
    "MaintenanceService/GetStatistics": [lambda _: maintenance_pb.GetStatisticsRequest()],
    "ScheduleService/ListSchedules": [lambda _: schedules_pb.ListSchedulesRequest()],
    "ThumbnailService/ListThumbnails": [
        lambda _: thumbnails_pb.ListThumbnailsRequest(group_key=GROUP_KEY)
    ],
    "ThumbnailService/ScheduleCleanup": [
        lambda _: thumbnails_pb.ScheduleCleanupRequest(group_key=GROUP_KEY)
    ],
    "TokenService/ListTokens": [lambda _: tokens_pb.ListTokensRequest()],
    "TokenService/CreateToken": [
        lambda _: tokens_pb.CreateTokenRequest(
            token=tokens_pb.Token(display_name="new", role="ROLE_VIEWER")
        )
    ],
}
# About the whole installation: for nobody who sees one tenant of it.
SHARED: dict[str, list[Build]] = {
    "LibraryService/CreateLibrary": [new_library],
    "DataPlaneService/ProbeRoot": [lambda t: data_pb.ProbeRootRequest(root_path=bytes(t.root))],
    "DataPlaneService/GetStatus": [lambda _: data_pb.GetStatusRequest()],
    "MaintenanceService/GetControlPlaneStatus": [
        lambda _: maintenance_pb.GetControlPlaneStatusRequest()
    ],
    "MaintenanceService/RequestCheckpoint": [lambda _: maintenance_pb.RequestCheckpointRequest()],
    "MaintenanceService/ListCheckpoints": [lambda _: maintenance_pb.ListCheckpointsRequest()],
    "MaintenanceService/GetCheckpoint": [
        lambda _: maintenance_pb.GetCheckpointRequest(name="checkpoints/1")
    ],
    "WorkerService/ListWorkers": [lambda _: workers_pb.ListWorkersRequest()],
    "WorkerService/CommandWorker": [
        lambda _: workers_pb.CommandWorkerRequest(name="workers/one", command="COMMAND_PAUSE")
    ],
}


def methods() -> dict[str, Any]:
    """Every method of both planes, by service and name."""
    modules = (
        importlib.import_module(f"{v1.__name__}.{found.name}")
        for found in pkgutil.iter_modules(v1.__path__)
        if found.name.endswith("_service_pb2")
    )
    services = chain.from_iterable(
        module.DESCRIPTOR.services_by_name.values() for module in modules
    )
    return {
        f"{service.name}/{method.name}": method
        for service in services
        for method in service.methods
    }


METHODS = methods()


@dataclass(frozen=True)
class Two:
    """North, who calls, and South, of whom North must learn nothing."""

    control: ControlPlane
    data_address: str
    north: Tenant
    south: Tenant
    nobody: Tenant
    token: str

    def call(self, called: str, request: Any, token: str = "") -> list[Any] | Refusal:
        """Make a call as North, or as the holder of another token."""
        method = METHODS[called]
        is_of_data = called.partition("/")[0] in DATA_PLANE
        with open_channel(self.data_address if is_of_data else self.control.address) as channel:
            kind = channel.unary_stream if method.server_streaming else channel.unary_unary
            make: Any = kind(
                f"/mediaplane.v1.{called}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            try:
                answer = make(request, metadata=bearing(token or self.token), timeout=30)
                return list(answer) if method.server_streaming else [answer]
            except grpc.RpcError as error:
                return refusal_of(error)

    def tells_of_south(self, answer: Any) -> bool:
        """Whether an answer has a name of South's, or a part of one."""
        words = "".join(map(MessageToString, answer)) if isinstance(answer, list) else repr(answer)
        names = (getattr(self.south, one.name) for one in fields(Tenant) if one.name != "root")
        return any(re.search(rf"{re.escape(name)}(?!\d)", words) for name in names)


@pytest.fixture
def two(database: Databases, tmp_path: Path) -> Iterator[Two]:
    south = settle(database.control, "south", tmp_path)
    north = settle(database.control, "north", tmp_path)
    token = add_token(database, Role.ADMIN, "north")
    with (
        serving_control(database, tmp_path) as control,
        serving_data(database, tmp_path) as data,
    ):
        ghost = nobody(tmp_path / "nobody")
        yield Two(control, data.address, north, south, ghost, token)


def cases(table: dict[str, list[Build]]) -> list[tuple[str, Build]]:
    return [(called, build) for called, builds in table.items() for build in builds]


def alike(told: Refusal, tenant: Tenant) -> Refusal:
    """A refusal without the names that the caller has sent."""
    words = re.sub(r"\d+", "#", told.text.replace(tenant.name, "*"))
    details = {name: value.replace(tenant.name, "*") for name, value in told.metadata.items()}
    return Refusal(told.code, told.reason, told.domain, details, words)


def test_every_method_of_both_planes_has_a_case() -> None:
    assert {*NAMED, *UNNAMED, *SHARED} == METHODS.keys()


def test_of_every_table_it_is_known_whose_its_rows_are() -> None:
    assert {*OWNED, *UNOWNED} == metadata.tables.keys()


def test_what_another_tenant_has_is_not_found_like_what_nobody_has(two: Two) -> None:
    before = dump(two.control.database.control, "south")
    for called, build in cases(NAMED):
        told = two.call(called, build(two.south))
        expected = two.call(called, build(two.nobody))
        assert isinstance(told, Refusal), called
        assert isinstance(expected, Refusal), called
        assert told.code is StatusCode.NOT_FOUND, (called, told)
        assert alike(told, two.south) == alike(expected, two.nobody), called
    assert dump(two.control.database.control, "south") == before


def test_what_a_tenant_has_is_found_and_nothing_of_another_with_it(two: Two) -> None:
    before = dump(two.control.database.control, "south")
    for called, build in cases(UNNAMED) + cases(NAMED):
        answer = two.call(called, build(two.north))
        assert not two.tells_of_south(answer), (called, answer)
        if isinstance(answer, Refusal):
            # Such as: a second scan, or what is not in the cache. Never: it is not there.
            known = (StatusCode.FAILED_PRECONDITION, StatusCode.ALREADY_EXISTS)
            assert answer.code in known, (called, answer)
    assert dump(two.control.database.control, "south") == before


def test_nobody_of_one_tenant_is_told_of_the_whole_installation(two: Two) -> None:
    for called, build in cases(SHARED):
        told = two.call(called, build(two.north))
        assert isinstance(told, Refusal), called
        assert told.code is StatusCode.PERMISSION_DENIED, called


def test_who_sees_all_tenants_sees_both(two: Two) -> None:
    everything = add_token(two.control.database, Role.ADMIN, None)
    for called, build in cases(NAMED):
        if METHODS[called].name.startswith(("Get", "List", "Read")):
            for tenant in (two.north, two.south):
                answer = two.call(called, build(tenant), everything)
                is_found = not isinstance(answer, Refusal) or answer.code is not (
                    StatusCode.NOT_FOUND
                )
                assert is_found, (called, answer)
    assert two.tells_of_south(
        two.call("LibraryService/ListLibraries", libraries_pb.ListLibrariesRequest(), everything)
    )
