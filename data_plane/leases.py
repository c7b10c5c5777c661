"""The leases this worker holds at the moment, shared by its slots and its heartbeat."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from time import time

from data_plane.executor import Control
from data_plane.output import note_waits
from mediaplane import traces
from mediaplane.protocol.driver import Row
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Machine
from mediaplane.protocol.machines import ASSETS, JOBS
from mediaplane.protocol.values import JobKind


@dataclass(eq=False, slots=True)
class Claimed:
    """A row this worker owns while it works on it."""

    machine: Machine
    row: Row
    lessee: Lessee
    control: Control
    # What the database was told last, so that nothing is written twice.
    told: tuple[int, int] = (0, 0)
    # Its outcome is being written, so that no heartbeat is missed.
    is_ended: bool = False
    started_at: float = field(default_factory=time)

    def __str__(self) -> str:
        return f"{self.machine.name} {self.lessee.row_id} (claim {self.lessee.epoch})"


@dataclass(eq=False, slots=True)
class Held(Claimed):
    """A job, or an item of one."""

    kind: JobKind = field(kw_only=True)

    @property
    def job_id(self) -> int:
        """The job that the row is or belongs to."""
        job_id: int = self.row["id" if self.machine is JOBS else "job_id"]
        return job_id

    def traced(self) -> AbstractContextManager[None]:
        """Make a span of the job, below the one it was asked for in; items are parts of it."""
        if self.machine is not JOBS or not traces.is_on():
            return nullcontext()
        return traces.span(f"run {self.kind}", self.row["trace_parent"], job=self.job_id)

    @property
    def is_cut(self) -> bool:
        """Whether the row is a job that is cut into items."""
        return self.machine is JOBS and self.row["total_items"] is not None


@dataclass(eq=False, slots=True)
class HeldMedia(Claimed):
    """A picture or a video to decode, or thumbnails to clean up."""

    # Whose media it is, once that is known.
    library: str | None = None


class Leases:
    """All rows that this worker owns, and whether it wants more."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.paused = threading.Event()
        self.stopping = threading.Event()  # no more work is taken
        self.interrupted = threading.Event()  # what is not done by now is put back
        self._lock = threading.Lock()
        self._held: set[Claimed] = set()

    @contextmanager
    def hold(
        self, machine: Machine, kind: JobKind | None, rows: Sequence[Row]
    ) -> Iterator[list[Held]]:
        """Keep claimed rows alive for as long as they are worked on; items need their kind said."""
        held = [
            Held(machine, row, *self._owned(row), kind=kind or JobKind(row["kind"])) for row in rows
        ]
        with self._keep(held):
            yield held

    @contextmanager
    def hold_media(self, machine: Machine, row: Row) -> Iterator[HeldMedia]:
        """Keep a claimed row of media work alive for as long as it is worked on."""
        held = HeldMedia(machine, row, *self._owned(row))
        held.library = row["library_id"] if machine is ASSETS else None
        with self._keep([held]):
            yield held

    @contextmanager
    def hold_one(self, machine: Machine, row: Row) -> Iterator[Claimed]:
        """Keep a claimed row alive that is neither a job nor media."""
        held = Claimed(machine, row, *self._owned(row))
        with self._keep([held]):
            yield held

    @contextmanager
    def _keep(self, held: Sequence[Claimed]) -> Iterator[None]:
        note_waits(held[0].machine, [one.row for one in held])
        with self._lock:
            self._held.update(held)
        try:
            yield
        finally:
            self.forget(held)

    def _owned(self, row: Row) -> tuple[Lessee, Control]:
        lessee = Lessee(row["id"], self.worker_id, row["lease_epoch"])
        return lessee, Control(interrupted=self.interrupted)

    def forget(self, held: Iterable[Claimed]) -> None:
        """Keep these rows alive no longer."""
        with self._lock:
            self._held.difference_update(held)

    def all(self) -> list[Claimed]:
        """Return every held row."""
        with self._lock:
            return list(self._held)
