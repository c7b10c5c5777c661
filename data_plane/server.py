"""Puts the data plane together and runs it until it is told to stop."""

import logging
import os
import re
import socket
import threading
import uuid

from data_plane import registry
from data_plane.content import ContentService
from data_plane.executor import Context, Control
from data_plane.heartbeat import Heartbeat
from data_plane.leases import Leases
from data_plane.roots import Roots
from data_plane.runner import Runner
from data_plane.settings import DataSettings
from data_plane.status import DataPlaneService
from mediaplane import serving
from mediaplane.locations import Locations
from mediaplane.protocol import revision
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import Plane
from mediaplane.v1.content_service_pb2_grpc import add_ContentServiceServicer_to_server
from mediaplane.v1.data_plane_service_pb2_grpc import add_DataPlaneServiceServicer_to_server

log = logging.getLogger(__name__)


def run(locations: Locations, settings: DataSettings, stop: threading.Event) -> None:
    """Work and serve until `stop` is set."""
    registry.check(registry.EXECUTORS)
    database = Database(locations.database_url, Plane.DATA)
    revision.check(database)
    leases = Leases(_worker_id(settings.worker_name), stop)
    roots = Roots(settings.roots)
    info = os.stat(locations.state)
    own = frozenset({(info.st_dev, info.st_ino)})

    def context(control: Control) -> Context:
        return Context(control, roots.open_jail, own)

    heartbeat = Heartbeat(database, leases, settings)
    runner = Runner(database, leases, settings, context)
    server, states = serving.build_server(
        locations.data_address,
        services(database, leases, roots, settings),
        calls=settings.data_calls,
        streams=settings.data_streams,
    )
    heartbeat.start()
    runner.start()
    server.start()
    log.info("The data plane serves on %s", locations.data_address)
    stop.wait()
    states.enter_graceful_shutdown()
    stopped = server.stop(settings.stop_grace_seconds)
    if not runner.join(settings.stop_grace_seconds):
        log.warning("Some work did not end in time; its lease lapses and it is done again")
    heartbeat.stop()
    stopped.wait()
    database.close()


def services(
    database: Database, leases: Leases, roots: Roots, settings: DataSettings
) -> list[serving.Service]:
    """Return every service of this plane."""
    content = ContentService(database, roots, settings.data_streams)
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


def _worker_id(name: str) -> str:
    """Return an id that no other start of any worker ever had."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", name or socket.gethostname())[:80]
    return f"{host or 'worker'}-{uuid.uuid4().hex[:12]}"
