"""Puts the control plane together and runs it until it is told to stop."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from control_plane import grace, loops
from control_plane.audit import Auditor
from control_plane.feed import Feed
from control_plane.services.assets import AssetService
from control_plane.services.audit import AuditService
from control_plane.services.duplicates import DuplicateService
from control_plane.services.jobs import JobService
from control_plane.services.libraries import LibraryService
from control_plane.services.maintenance import MaintenanceService
from control_plane.services.schedules import ScheduleService
from control_plane.services.thumbnails import ThumbnailService
from control_plane.services.tokens import TokenService
from control_plane.services.workers import WorkerService
from control_plane.settings import ControlSettings
from mediaplane import health, serving
from mediaplane.calls import CallMeter
from mediaplane.locations import Locations
from mediaplane.protocol import revision
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import Plane
from mediaplane.tokens import Tokens
from mediaplane.v1.asset_service_pb2_grpc import add_AssetServiceServicer_to_server
from mediaplane.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from mediaplane.v1.duplicate_service_pb2_grpc import add_DuplicateServiceServicer_to_server
from mediaplane.v1.job_service_pb2_grpc import add_JobServiceServicer_to_server
from mediaplane.v1.library_service_pb2_grpc import add_LibraryServiceServicer_to_server
from mediaplane.v1.maintenance_service_pb2_grpc import add_MaintenanceServiceServicer_to_server
from mediaplane.v1.schedule_service_pb2_grpc import add_ScheduleServiceServicer_to_server
from mediaplane.v1.thumbnail_service_pb2_grpc import add_ThumbnailServiceServicer_to_server
from mediaplane.v1.token_service_pb2_grpc import add_TokenServiceServicer_to_server
from mediaplane.v1.worker_service_pb2_grpc import add_WorkerServiceServicer_to_server

log = logging.getLogger(__name__)


def run(locations: Locations, settings: ControlSettings, stop: threading.Event) -> None:
    """Serve until `stop` is set."""
    database = Database(locations.database_url, Plane.CONTROL, settings.wal_limit_bytes)
    revision.check(database)
    with (
        _metrics(database, settings) as meter,
        health.answering(settings.control_health_address, database, stop) as served,
    ):
        _serve(database, locations, settings, stop, served, meter)
    database.close()


@contextmanager
def _metrics(database: Database, settings: ControlSettings) -> Iterator[CallMeter | None]:
    """Serve metrics where the settings say so; yields what is to measure the calls."""
    if not settings.control_metrics_address:
        yield None
        return
    # Imported when asked for: most planes serve none, and start sooner.
    from control_plane.metrics import collector  # noqa: PLC0415
    from mediaplane import metrics  # noqa: PLC0415

    meter = CallMeter()
    with metrics.serving(
        collector(database, meter),
        settings.control_metrics_address,
        setting="MEDIAPLANE_CONTROL_METRICS_ADDRESS",
        beyond_loopback=settings.metrics_beyond_loopback,
    ):
        yield meter


def _serve(
    database: Database,
    locations: Locations,
    settings: ControlSettings,
    stop: threading.Event,
    served: threading.Event,
    meter: CallMeter | None,
) -> None:
    bell = database.bell = Bell(database, locations.runtime)
    feed = Feed(database, bell, settings.feed_seconds)
    tokens, auditor = Tokens(database), Auditor(database)
    server, states = serving.build_server(
        locations.control_address,
        services(database, feed, settings),
        calls=settings.control_calls,
        streams=settings.control_watchers,
        settings=settings,
        tokens=tokens,
        note_refusal=auditor.note_refusal,
        local_address=locations.local_control_address,
        meter=meter,
    )
    bell.start()
    auditor.start()
    feed.start()
    threads = loops.start(database, settings, tokens, stop)
    server.start()
    served.set()
    log.info("The control plane serves on %s", locations.control_address)
    stop.wait()
    states.enter_graceful_shutdown()
    with grace.ending(database, settings.stop_grace_seconds):
        feed.stop()
        server.stop(settings.stop_grace_seconds).wait()
        for thread in threads:
            thread.join()
    # After the last call: it may have been refused.
    auditor.stop()
    bell.close()


def services(database: Database, feed: Feed, settings: ControlSettings) -> list[serving.Service]:
    """Return every service of this plane."""
    job_service = JobService(database, feed, settings.control_watchers)
    library_service, asset_service = LibraryService(database), AssetService(database)
    duplicate_service, worker_service = DuplicateService(database), WorkerService(database)
    maintenance_service = MaintenanceService(database, settings.checkpoint_interval_seconds)
    schedule_service = ScheduleService(database, settings.retention_days)
    token_service = TokenService(database, settings.remote_token_days)
    audit_service = AuditService(database)
    thumbnail_service = ThumbnailService(database, settings.thumbnail_capacity)
    return [
        ("mediaplane.v1.JobService", lambda s: add_JobServiceServicer_to_server(job_service, s)),
        (
            "mediaplane.v1.LibraryService",
            lambda s: add_LibraryServiceServicer_to_server(library_service, s),
        ),
        (
            "mediaplane.v1.AssetService",
            lambda s: add_AssetServiceServicer_to_server(asset_service, s),
        ),
        (
            "mediaplane.v1.DuplicateService",
            lambda s: add_DuplicateServiceServicer_to_server(duplicate_service, s),
        ),
        (
            "mediaplane.v1.WorkerService",
            lambda s: add_WorkerServiceServicer_to_server(worker_service, s),
        ),
        (
            "mediaplane.v1.MaintenanceService",
            lambda s: add_MaintenanceServiceServicer_to_server(maintenance_service, s),
        ),
        (
            "mediaplane.v1.ScheduleService",
            lambda s: add_ScheduleServiceServicer_to_server(schedule_service, s),
        ),
        (
            "mediaplane.v1.ThumbnailService",
            lambda s: add_ThumbnailServiceServicer_to_server(thumbnail_service, s),
        ),
        (
            "mediaplane.v1.TokenService",
            lambda s: add_TokenServiceServicer_to_server(token_service, s),
        ),
        (
            "mediaplane.v1.AuditService",
            lambda s: add_AuditServiceServicer_to_server(audit_service, s),
        ),
    ]
