"""Serves metrics over HTTP in the text format of Prometheus; what they are each plane says."""

import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import accumulate
from socketserver import ThreadingTCPServer
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from mediaplane import __version__
from mediaplane.counters import Counter, Histogram, Labels
from mediaplane.errors import UnusableSettings
from mediaplane.protocol.values import Plane

log = logging.getLogger(__name__)

# However many servers scrape: what they are told is looked for no more often.
FRESH_SECONDS = 1.0
# No more libraries than this are shown, so that no process has more than 1,000 series.
MAX_LIBRARIES = 100
# A database that takes longer counts as away, and the scrape goes on without it.
DATABASE_SECONDS = 3.0

_PLAIN = "text/plain; charset=utf-8"


@contextmanager
def serving(
    collect: Callable[[], Iterable[Metric]], address: str, *, setting: str, beyond_loopback: bool
) -> Iterator[tuple[str, int]]:
    """Serve metrics at an address during the block; yields the host and port.

    `setting` is the variable that has the address, for whoever has to choose another one.
    """
    with _listen(Exposition(collect), address, setting, beyond_loopback) as server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.socket.getsockname()[:2]
        finally:
            server.shutdown()
            thread.join()


class Exposition:
    """The metrics as text, made anew when the last is too old."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect  # as the registry calls it
        self._registry = CollectorRegistry()
        self._registry.register(self)
        for of_process in (ProcessCollector, PlatformCollector, GCCollector):
            of_process(registry=self._registry)
        self._lock = threading.Lock()
        self._text = b""
        self._fresh_until = float("-inf")

    def describe(self) -> list[Metric]:
        """Return nothing, so that nothing is collected before somebody asks."""
        return []

    def text(self) -> bytes:
        """Return every metric as it is now, or was a moment ago."""
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._text = generate_latest(self._registry)
                self._fresh_until = time.monotonic() + FRESH_SECONDS
            return self._text


def build_info(plane: Plane) -> Metric:
    """Return which plane of which version this is."""
    meaning = "1, with the plane that this process is and its version."
    labels = ("plane", "version")
    return gauge("mediaplane_build_info", meaning, labels, {(plane, __version__): 1})


def database_up(is_up: bool) -> Metric:
    """Return whether the database has answered this process."""
    meaning = "1 when the database has answered in time; else 0, and what it knows is left out."
    return gauge("mediaplane_database_up", meaning, (), {(): is_up})


def gauge(name: str, meaning: str, labels: Labels, figures: dict[Labels, float]) -> Metric:
    """Return figures that rise and fall, by the values of their labels."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, figure in figures.items():
        family.add_metric(values, figure)
    return family


def total(name: str, meaning: str, labels: Labels, figures: dict[Labels, float]) -> Metric:
    """Return figures that only rise, by the values of their labels."""
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values, figure in figures.items():
        family.add_metric(values, figure)
    return family


def counted(*counters: Counter) -> Iterator[Metric]:
    """Yield the metrics of counters."""
    for counter in counters:
        yield total(counter.name, counter.meaning, counter.labels, counter.figures())


def distributed(*histograms: Histogram) -> Iterator[Metric]:
    """Yield the metrics of histograms."""
    for histogram in histograms:
        family = HistogramMetricFamily(histogram.name, histogram.meaning, labels=histogram.labels)
        bounds = [*map(str, histogram.bounds), "+Inf"]
        for values, found in histogram.distributions().items():
            buckets = list(zip(bounds, accumulate(found.counts), strict=True))
            family.add_metric(values, buckets, found.total)
        yield family


class _Server(ThreadingTCPServer):
    """Not http.server's: that one asks for the name of the host, which can take long."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, family: socket.AddressFamily, place: Any, exposition: Exposition) -> None:
        self.address_family = family
        self.exposition = exposition
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
            found = self.server.exposition.text()
        except Exception:
            # The plane lives on, and the next scrape may succeed.
            log.exception("The metrics could not be collected")
            said = b"The metrics could not be collected; the log of this process says why.\n"
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


def _listen(exposition: Exposition, address: str, setting: str, beyond_loopback: bool) -> _Server:
    host, port = _place(address, setting, beyond_loopback)
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _Server(family, place, exposition)
    except OSError as error:
        raise UnusableSettings(
            f"Cannot serve metrics on {address} ({error.strerror}); is another server there"
            f" already? Choose another {setting}."
        ) from None


def _place(address: str, setting: str, beyond_loopback: bool) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        is_address = 0 <= int(port) < 1 << 16
    except ValueError:
        is_local = is_address = False
    if not is_address:
        raise UnusableSettings(
            f"{setting} is {address!r}; it must be an address with a port, such as 127.0.0.1:9464."
        )
    if not (is_local or beyond_loopback):
        raise UnusableSettings(
            f"{setting} is {address!r}, which others than this machine may reach. Use a loopback"
            " address such as 127.0.0.1, or allow it by MEDIAPLANE_METRICS_BEYOND_LOOPBACK=1."
        )
    return host, int(port)
