"""One worker: its slots, its heart, its scratch folder and its flight log, started and stopped."""

import gc
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from data_plane.checkpoints import Checkpoints
from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Failed, Limits, Order
from data_plane.decoders.pool import Pool
from data_plane.executor import Context, Control
from data_plane.flight_log import FlightLog
from data_plane.hasher_messages import Station
from data_plane.hashers import Hashers
from data_plane.heartbeat import Heartbeat
from data_plane.io_budget import HASHING, IoBudget
from data_plane.leases import Leases
from data_plane.pipeline import Pipeline
from data_plane.roots import Roots
from data_plane.runner import Runner
from data_plane.scratch import Scratch, sweep
from data_plane.settings import DataSettings
from mediaplane.locations import Locations
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.values import THUMBNAIL_IO_BUCKET, MediaType, WorkerCommand

log = logging.getLogger(__name__)


class Worker:
    """Does the work of one process until it is stopped."""

    def __init__(
        self,
        database: Database,
        settings: DataSettings,
        locations: Locations,
        shutdown: threading.Event,
    ) -> None:
        self.leases = Leases(new_worker_id(settings.worker_name))
        self.roots = Roots(settings.roots)
        self.flight_log = FlightLog(self.leases.worker_id, locations.logs / "forensics")
        self._settings = settings
        self._shutdown = shutdown  # set by an operator's command, like a signal
        sweep(locations.scratch)
        self._scratch = Scratch(locations.scratch, self.leases.worker_id)
        self._state = os.fsencode(locations.state)
        info = os.stat(self._state)
        self._own_folders = frozenset({(info.st_dev, info.st_ino)})
        self._budget = IoBudget(database, HASHING, settings.hash_bytes_per_second)
        self._bell = Bell(database, locations.runtime)
        database.bell = self._bell
        self._scans = self._bell.listen(Topic.SCANS)
        self._media_budget = IoBudget(
            database, THUMBNAIL_IO_BUCKET, settings.thumbnail_bytes_per_second
        )
        self._limits = Limits(
            max_pixels=settings.max_pixels,
            max_duration_seconds=settings.max_video_seconds,
            allows_svg=settings.allow_svg,
        )
        self._decoders = Pool(
            settings.image_slots + settings.video_slots,
            DecoderSettings(memory_bytes=settings.decoder_memory_bytes),
        )
        self._pipeline = Pipeline(
            database, self.leases, settings, self.roots, self._media_context, self._bell
        )
        self._hashers = Hashers(Station(database.url, settings))
        self._runner = Runner(
            database,
            self.leases,
            settings,
            self._context,
            self._bell,
            self.flight_log,
            self._hashers,
        )
        self._checkpoints = Checkpoints(database, self.leases, settings)
        self._heartbeat = Heartbeat(
            database,
            self.leases,
            settings,
            self._bell,
            self._obey,
            self._stats,
            self._upkeep,
        )

    @property
    def decoders(self) -> Pool:
        """The processes that decode media for this worker."""
        return self._decoders

    def start(self) -> None:
        """Make the worker known and begin to claim."""
        # What is there by now stays: the collector need not look at it again and again.
        gc.freeze()
        self._bell.start()
        self._hashers.start()
        self._heartbeat.start()
        self._runner.start()
        self._pipeline.start()
        self._checkpoints.start()

    def stop(self) -> None:
        """Finish what is nearly done and put back the rest, within the grace."""
        half = self._settings.stop_grace_seconds / 2
        self.leases.stopping.set()
        self._bell.ring(Topic.WORK)
        if not self._join(half):
            self.leases.interrupted.set()
            if not self._join(half):
                log.warning("Some work did not end in time; its lease lapses and it is done again")
        self._decoders.close()
        self._hashers.close()
        self._heartbeat.stop()
        self._bell.close()
        self._scratch.close()

    def _join(self, seconds: float) -> bool:
        ends_at = time.monotonic() + seconds
        is_idle = self._runner.join(seconds)
        for others in (self._pipeline, self._checkpoints):
            is_idle = others.join(max(0.0, ends_at - time.monotonic())) and is_idle
        return is_idle

    def _media_context(self, control: Control) -> Context:
        ctx = self._context(control)
        ctx.spend = partial(self._media_budget.spend, control)
        ctx.limits = self._limits
        ctx.decode = partial(self._decode, control)
        return ctx

    def _decode(
        self, control: Control, order: Order, source: int, outputs: Sequence[int]
    ) -> Done | Failed:
        is_video = order.media_type is MediaType.VIDEO
        settings = self._settings
        deadline = settings.video_deadline_seconds if is_video else settings.image_deadline_seconds
        return self._decoders.decode(order, source, outputs, deadline, control.check)

    def _context(self, control: Control) -> Context:
        return Context(
            control,
            self.roots.open_jail,
            self._own_folders,
            self._scratch.file,
            self._state,
            partial(self._budget.spend, control),
            is_limited=self._settings.hash_bytes_per_second > 0,
            await_verdict=self._scans.wait,
            expect_hashing=partial(self._hashers.prepare, self._settings.slots),
        )

    def _stats(self) -> dict[str, Any]:
        return {
            "ended": {**self._runner.ended, **self._pipeline.ended},
            "media_slots": self._settings.image_slots + self._settings.video_slots,
            "sandboxes": sorted(self._decoders.levels()),
        }

    def _upkeep(self) -> None:
        self._runner.hand_back()
        self._hashers.tidy()

    def _obey(self, command: WorkerCommand) -> None:
        log.info("Told to: %s", command)
        match command:
            case WorkerCommand.PAUSE:
                self.leases.paused.set()
                self._heartbeat.announce()
            case WorkerCommand.RESUME:
                self.leases.paused.clear()
                self._heartbeat.announce()
                self._bell.ring(Topic.WORK)
            case WorkerCommand.SHUTDOWN:
                self._shutdown.set()
            case WorkerCommand.FORENSIC_DUMP:
                path = self.flight_log.dump("asked for by an operator")
                log.warning("Wrote the flight log to logs/forensics/%s", path.name)
            case WorkerCommand.NONE:
                pass


def new_worker_id(name: str) -> str:
    """Return an id that no other start of any worker ever had."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", name or socket.gethostname())[:80]
    return f"{host or 'worker'}-{uuid.uuid4().hex[:12]}"
