"""A request for every method of both planes, built of what a tenant has."""

from collections.abc import Callable
from typing import Any

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
from tests.support.control import PROBE
from tests.support.tenancy import GROUP_KEY, SHARED_CONTENT, Tenant

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
    "DataPlaneService/GetStatus": [lambda _: data_pb.GetStatusRequest()],
    "DataPlaneService/ProbeRoot": [lambda t: data_pb.ProbeRootRequest(root_path=bytes(t.root))],
    "LibraryService/CreateLibrary": [new_library],
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
