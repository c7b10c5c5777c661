"""What the data plane tells Prometheus: what this worker has done, holds and has room for."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client.core import Metric

from data_plane import media, output
from data_plane.decoders.pool import CONFINEMENTS
from data_plane.disks import Disks, Room
from data_plane.roots import Root
from data_plane.worker import Worker
from mediaplane.calls import CallMeter
from mediaplane.inquiry import Inquiry
from mediaplane.metrics import (
    DATABASE_SECONDS,
    MAX_LIBRARIES,
    build_info,
    counted,
    database_up,
    distributed,
    gauge,
    total,
)
from mediaplane.protocol.database import Database
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.tally import TALLIES
from mediaplane.protocol.values import Plane

log = logging.getLogger(__name__)


def collector(
    database: Database, worker: Worker, state: Path, meter: CallMeter
) -> Callable[[], Iterator[Metric]]:
    """Return what collects all metrics of this process."""
    disks = Disks(state, worker.roots.open_jail)
    libraries = Inquiry(lambda: media.library_roots(database, MAX_LIBRARIES))

    def collect() -> Iterator[Metric]:
        libraries.begin()
        yield build_info(Plane.DATA)
        yield from counted(*TALLIES[Plane.DATA].counters, *output.COUNTERS, meter.handled)
        yield from distributed(*output.HISTOGRAMS, meter.latency)
        yield _held(worker)
        yield from _decoders(worker)
        roots: dict[str, Root] = {}
        try:
            roots = libraries.answer(DATABASE_SECONDS)
        except Exception:  # what this process knows by itself is told all the same
            log.exception("The libraries could not be read from the database")
            yield database_up(False)
        else:
            yield database_up(True)
        yield from _rooms(*disks.look(roots))

    return collect


def _held(worker: Worker) -> Metric:
    held = [one.machine.name for one in worker.leases.all()]
    return gauge(
        "mediaplane_leases_held",
        "Rows that this worker holds at the moment.",
        ("machine",),
        {(machine.name,): held.count(machine.name) for machine in MACHINES},
    )


def _decoders(worker: Worker) -> Iterator[Metric]:
    tally, levels = worker.decoders.tally(), worker.decoders.levels()
    yield total(
        "mediaplane_decoder_orders_total",
        "Pictures and videos that were given to a decoder.",
        (),
        {(): tally.items},
    )
    yield total(
        "mediaplane_decoder_starts_total", "Decoder processes started.", (), {(): tally.spawned}
    )
    yield total(
        "mediaplane_decoder_kills_total",
        "Decoder processes that this worker killed, by reason.",
        ("reason",),
        {(reason,): kills for reason, kills in tally.kills.items()},
    )
    yield total(
        "mediaplane_decoder_crashes_total",
        "Decoder processes that crashed or answered nonsense.",
        (),
        {(): tally.crashes},
    )
    yield total(
        "mediaplane_decoder_losses_total",
        "Decoder processes that were killed from outside, as a kernel short of memory does.",
        (),
        {(): tally.lost},
    )
    yield gauge(
        "mediaplane_decoder_confined",
        "1 when all decoders started so far are confined by this, 0 when one is not.",
        ("by",),
        {(by,): all(by in level.split("+") for level in levels) for by in CONFINEMENTS},
    )


def _rooms(of_state: Room | None, of_libraries: dict[str, Room]) -> Iterator[Metric]:
    state = {} if of_state is None else {(): of_state}
    libraries = {(slug,): room for slug, room in of_libraries.items()}
    yield gauge(
        "mediaplane_state_disk_free_bytes",
        "Free space on the disk of the state directory.",
        (),
        {labels: room.free_bytes for labels, room in state.items()},
    )
    yield gauge(
        "mediaplane_state_disk_size_bytes",
        "Size of the disk of the state directory.",
        (),
        {labels: room.size_bytes for labels, room in state.items()},
    )
    yield gauge(
        "mediaplane_library_disk_free_bytes",
        "Free space on the disk of a library's folder, where this worker can reach it.",
        ("library",),
        {labels: room.free_bytes for labels, room in libraries.items()},
    )
    yield gauge(
        "mediaplane_library_disk_size_bytes",
        "Size of the disk of a library's folder, where this worker can reach it.",
        ("library",),
        {labels: room.size_bytes for labels, room in libraries.items()},
    )
