"""Serves metrics for Prometheus, read from the database whenever somebody asks."""

import ipaddress
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from control_plane.store import roots
from mediaplane import __version__
from mediaplane.errors import UnusableSettings
from mediaplane.protocol.database import Database

log = logging.getLogger(__name__)

MAX_LIBRARIES = 1000
_PLAIN = "text/plain; charset=utf-8"


@contextmanager
def serving(database: Database, address: str) -> Iterator[tuple[str, int]]:
    """Serve metrics at an address during the block; yields the host and port."""
    with _listen(database, address) as server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.socket.getsockname()[:2]
        finally:
            server.shutdown()
            thread.join()


def collect(database: Database) -> bytes:
    """Return every metric as it is now, in the text format of Prometheus."""
    with database.read() as conn:
        seen = roots.seen(conn, MAX_LIBRARIES)
    registry = CollectorRegistry()
    build = Gauge(
        "mediaplane_build_info",
        "1, with the version of the control plane.",
        ["version"],
        registry=registry,
    )
    build.labels(__version__).set(1)
    root_up = Gauge(
        "mediaplane_library_root_up",
        "1 when the last scan that could tell saw the library's folder, 0 when it was lost.",
        ["library"],
        registry=registry,
    )
    for slug, is_seen in seen.items():
        root_up.labels(slug).set(is_seen)
    return generate_latest(registry)


class _Server(ThreadingTCPServer):
    """Not http.server's: that one asks for the name of the host, which can take long."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, family: socket.AddressFamily, place: Any, database: Database) -> None:
        self.address_family = family
        self.database = database
        super().__init__(place, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request
        log.debug("%s went away while it asked for metrics", client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server
    timeout = 10.0  # seconds that a client may take to ask
    server_version = "mediaplane"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, _PLAIN, b"The metrics are at /metrics.\n")
            return
        try:
            found = collect(self.server.database)
        except Exception:
            # The database may be restarting: the plane lives on, and the next scrape may succeed.
            log.exception("The metrics could not be read from the database")
            said = b"The database could not be read; the control plane's log says why.\n"
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, _PLAIN, said)
            return
        self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, found)

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        log.debug(format, *args)


def _listen(database: Database, address: str) -> _Server:
    host, port = _place(address)
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _Server(family, place, database)
    except OSError as error:
        raise UnusableSettings(
            f"Cannot serve metrics on {address} ({error.strerror}); is another server there"
            " already? Choose another MEDIAPLANE_CONTROL_METRICS_ADDRESS."
        ) from None


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        is_port = 0 <= int(port) < 1 << 16
    except ValueError:
        is_local = is_port = False
    if not (is_local and is_port):
        raise UnusableSettings(
            f"MEDIAPLANE_CONTROL_METRICS_ADDRESS is {address!r}; it must be a loopback address"
            " with a port, such as 127.0.0.1:9464."
        )
    return host, int(port)
