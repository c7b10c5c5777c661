"""Answers the probes of an orchestrator on a port of its own, which needs no TLS and no token."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy.exc import SQLAlchemyError

from mediaplane.errors import UnusableSettings
from mediaplane.interceptors import AtOnce
from mediaplane.places import spare_places
from mediaplane.protocol import revision
from mediaplane.protocol.database import Database

log = logging.getLogger(__name__)

LIVENESS = "liveness"
READINESS = "readiness"

_PATIENCE_SECONDS = 10.0
_LOOKS = 5  # within the patience


@contextmanager
def answering(
    address: str,
    database: Database,
    stop: threading.Event,
    patience_seconds: float = _PATIENCE_SECONDS,
) -> Iterator[threading.Event]:
    """Answer probes at an address during the block; at none when it is empty.

    Yields what the plane sets when it serves: before, it is not ready.
    """
    served = threading.Event()
    if not address:
        yield served
        return
    probes = _Probes(database, served, stop, patience_seconds)
    places = spare_places()
    server = grpc.server(
        places,
        interceptors=[AtOnce(places)],
        options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 4096)],
    )
    health_pb2_grpc.add_HealthServicer_to_server(probes, server)
    _bind(server, address)
    ended = threading.Event()
    # A daemon: a database that never answers must not keep the plane from ending.
    threading.Thread(target=probes.look, args=[ended], name="readiness", daemon=True).start()
    server.start()
    try:
        yield served
    finally:
        ended.set()
        server.stop(None).wait()


class _Probes(health_pb2_grpc.HealthServicer):
    """Lives as long as it can answer; is ready while it serves and the database answers.

    The database is not asked by the call itself: one that hangs would hold up the answer that
    the process lives, and have a healthy plane killed for the fault of another.
    """

    def __init__(
        self,
        database: Database,
        served: threading.Event,
        stop: threading.Event,
        patience_seconds: float,
    ) -> None:
        self._database = database
        self._served = served
        self._stop = stop
        self._patience_seconds = patience_seconds
        self._answered_at = time.monotonic()

    def Check(  # noqa: N802 - gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        if request.service == LIVENESS:
            is_well = True
        elif request.service in ("", READINESS):
            is_well = self._is_ready()
        else:
            context.abort(
                grpc.StatusCode.NOT_FOUND, f"Ask for {LIVENESS} or {READINESS}; others are unknown."
            )
        states = health_pb2.HealthCheckResponse
        return states(status=states.SERVING if is_well else states.NOT_SERVING)

    def look(self, ended: threading.Event) -> None:
        """Ask the database for something small, again and again."""
        is_lost = False
        while not ended.wait(self._patience_seconds / _LOOKS):
            try:
                with self._database.read() as conn:
                    revision.recorded(conn)
            except SQLAlchemyError:
                if not is_lost:
                    log.warning("The database does not answer; not ready until it does")
                is_lost = True
                continue
            self._answered_at = time.monotonic()
            is_lost = False

    def _is_ready(self) -> bool:
        silent_seconds = time.monotonic() - self._answered_at
        does_serve = self._served.is_set() and not self._stop.is_set()
        return does_serve and silent_seconds < self._patience_seconds


def _bind(server: grpc.Server, address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        # Without a port gRPC would choose one.
        bound = server.add_insecure_port(address) if host and port.isdecimal() else 0
    except RuntimeError:
        bound = 0
    if not bound:
        raise UnusableSettings(
            f"Cannot answer probes on {address}; write host:port, such as 0.0.0.0:8081, of a port"
            " that no other server has."
        )
