"""Puts the data plane together and runs it until it is told to stop."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data_plane import registry
from data_plane.content import ContentService
from data_plane.flight_log import recording
from data_plane.leases import Leases
from data_plane.roots import Roots
from data_plane.settings import DataSettings
from data_plane.status import DataPlaneService
from data_plane.worker import Worker
from mediaplane import health, serving
from mediaplane.calls import CallMeter
from mediaplane.locations import Locations
from mediaplane.protocol import revision
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import Plane
from mediaplane.tokens import Tokens
from mediaplane.v1.content_service_pb2_grpc import add_ContentServiceServicer_to_server
from mediaplane.v1.data_plane_service_pb2_grpc import add_DataPlaneServiceServicer_to_server

log = logging.getLogger(__name__)


def run(locations: Locations, settings: DataSettings, stop: threading.Event) -> None:
    """Work and serve until `stop` is set."""
    registry.check(registry.EXECUTORS)
    database = Database(locations.database_url, Plane.DATA, settings.wal_limit_bytes)
    revision.check(database)
    worker = Worker(database, settings, locations, stop)
    with (
        recording(worker.flight_log),
        health.answering(settings.data_health_address, database, stop) as served,
        _metrics(database, worker, locations, settings) as meter,
    ):
        server, states = serving.build_server(
            locations.data_address,
            services(database, worker.leases, worker.roots, locations.state, settings),
            calls=settings.data_calls,
            streams=settings.data_streams,
            settings=settings,
            tokens=Tokens(database),
            local_address=locations.local_data_address,
            meter=meter,
        )
        worker.start()
        server.start()
        served.set()
        log.info("The data plane serves on %s", locations.data_address)
        stop.wait()
        states.enter_graceful_shutdown()
        stopped = server.stop(settings.stop_grace_seconds)
        worker.stop()
        stopped.wait()
    database.close()


@contextmanager
def _metrics(
    database: Database, worker: Worker, locations: Locations, settings: DataSettings
) -> Iterator[CallMeter | None]:
    """Serve metrics where the settings say so; yields what is to measure the calls."""
    if not settings.data_metrics_address:
        yield None
        return
    # Imported when asked for: most planes serve none, and start sooner.
    from data_plane.metrics import collector  # noqa: PLC0415
    from mediaplane import metrics  # noqa: PLC0415

    meter = CallMeter()
    with metrics.serving(
        collector(database, worker, locations.state, meter),
        settings.data_metrics_address,
        setting="MEDIAPLANE_DATA_METRICS_ADDRESS",
        beyond_loopback=settings.metrics_beyond_loopback,
    ):
        yield meter


def services(
    database: Database, leases: Leases, roots: Roots, state: Path, settings: DataSettings
) -> list[serving.Service]:
    """Return every service of this plane."""
    content = ContentService(database, roots, os.fsencode(state), settings.data_streams)
    status = DataPlaneService(leases, roots)
    return [
        (
            "mediaplane.v1.ContentService",
            lambda s: add_ContentServiceServicer_to_server(content, s),
        ),
        (
            "mediaplane.v1.DataPlaneService",
            lambda s: add_DataPlaneServiceServicer_to_server(status, s),
        ),
    ]
