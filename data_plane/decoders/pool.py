"""The decoders of a worker, lent to its threads for one order at a time."""

import logging
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from data_plane.decoders.decoder import WATCH_SECONDS, Child, Decoder, DecoderSettings, Tally
from data_plane.decoders.messages import Done, Failed, Order

log = logging.getLogger(__name__)

CONFINEMENTS = ("landlock", "seccomp")


class Pool:
    """Some decoders, each with a process that is started when it is first needed."""

    def __init__(self, decoders: int, settings: DecoderSettings) -> None:
        # A decoder dies with the thread that started its process, so that is one that stays.
        self._spawner = ThreadPoolExecutor(1, "decoder-spawner")
        self._decoders = [Decoder(settings, self._spawn) for _ in range(decoders)]
        # Last in, first out: no more processes than work at the same time.
        self._idle: queue.LifoQueue[Decoder] = queue.LifoQueue()
        for decoder in self._decoders:
            self._idle.put(decoder)
        self._lock = threading.Lock()
        self._has_warned = False

    def decode(
        self,
        order: Order,
        source_fd: int,
        output_fds: Sequence[int],
        deadline_seconds: float,
        check: Callable[[], None],
    ) -> Done | Failed:
        """Have an order done by the next decoder that is idle.

        The deadline is for each of at most two tries. `check` is called ten times a second, also
        while there is nothing but to wait; what it raises ends the order, and comes out here.
        """
        decoder = self._borrow(check)
        try:
            return decoder.decode(order, source_fd, output_fds, deadline_seconds, check)
        finally:
            self._warn_once(decoder.level)
            self._idle.put(decoder)

    def close(self) -> None:
        """Kill every process; orders under way end as interrupted, and so do later ones."""
        for decoder in self._decoders:
            decoder.stop()
        returned = [self._idle.get() for _ in self._decoders]
        for decoder in returned:
            decoder.close()
            self._idle.put(decoder)
        self._spawner.shutdown()

    def tally(self) -> Tally:
        """Return what happened in all decoders together."""
        total = Tally()
        for one in (decoder.tally for decoder in self._decoders):
            total.spawned += one.spawned
            total.items += one.items
            total.crashes += one.crashes
            total.lost += one.lost
            for why, count in one.kills.items():
                total.kills[why] += count
        return total

    def levels(self) -> set[str]:
        """Return what confines the processes that were started so far."""
        return {decoder.level for decoder in self._decoders if decoder.level}

    def _borrow(self, check: Callable[[], None]) -> Decoder:
        while True:
            check()
            try:
                return self._idle.get(timeout=WATCH_SECONDS)
            except queue.Empty:
                continue

    def _warn_once(self, level: str) -> None:
        missing = [name for name in CONFINEMENTS if level and name not in level.split("+")]
        with self._lock:
            if not missing or self._has_warned:
                return
            self._has_warned = True
        log.warning(
            "Decoders run without %s: a hostile file could reach what this worker can."
            " Use a kernel that has it, and a container that allows it.",
            " and ".join(missing),
        )

    def _spawn(self, settings: DecoderSettings) -> Child:
        return self._spawner.submit(_spawn, settings).result()


def _spawn(settings: DecoderSettings) -> Child:
    ours, theirs = socket.socketpair()
    ours.settimeout(WATCH_SECONDS)
    with theirs:
        try:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", settings.module),
                    *(str(theirs.fileno()), str(settings.memory_bytes)),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_environment(),
            )
        except OSError:
            ours.close()
            raise
    return Child(process, ours)


def _environment() -> dict[str, str]:
    """Return all that a decoder is to know: not the database, and no secret of the worker."""
    return {
        "LANG": "C.UTF-8",
        # The modules that are ours are its own as well, wherever they come from.
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        # There is a decoder for each processor, and address space is scarce.
        "VIPS_CONCURRENCY": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        # What a picture took is kept for the next one: to get memory from the system for each
        # again, page by page, took a twentieth of the time.
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    }
