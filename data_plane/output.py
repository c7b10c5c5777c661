"""Counts what this worker has made and how long its work waited and ran, for metrics."""

from collections.abc import Sequence

from mediaplane.counters import Counter, Histogram
from mediaplane.protocol.driver import Row
from mediaplane.protocol.kinds import KINDS
from mediaplane.protocol.lifecycle import Machine
from mediaplane.protocol.machines import (
    ASSETS,
    JOB_ITEMS,
    JOBS,
    THUMBNAIL_CLEANUP_JOBS,
    THUMBNAILS,
    WAL_MAINTENANCE_JOBS,
)
from mediaplane.protocol.values import MediaType

_BOUNDS = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_MEDIA = tuple((machine.name, kind) for machine in (THUMBNAILS, ASSETS) for kind in MediaType)
_CLEANUPS, _CHECKPOINTS = (THUMBNAIL_CLEANUP_JOBS.name, ""), (WAL_MAINTENANCE_JOBS.name, "")

HASHED_FILES = Counter("mediaplane_hashed_files_total", "Files whose hash was recorded.")
HASHED_BYTES = Counter("mediaplane_hashed_bytes_total", "Sizes of the files with a new hash.")
THUMBNAILS_MADE = Counter(
    "mediaplane_thumbnails_made_total", "Thumbnails made, on request and of new assets."
)
FRAMES_MADE = Counter("mediaplane_frames_made_total", "Frames taken out of videos.")

WAITS = Histogram(
    "mediaplane_work_wait_seconds",
    "Seconds from when work was added to its first claim by this worker.",
    _BOUNDS,
    ("machine", "kind"),
    [*((JOBS.name, kind) for kind in KINDS), *_MEDIA, _CLEANUPS, _CHECKPOINTS],
)
RUNS = Histogram(
    "mediaplane_work_run_seconds",
    "Seconds that this worker worked on something, whatever came of it.",
    _BOUNDS,
    ("machine", "kind"),
    [
        *((JOBS.name, kind) for kind in KINDS),
        *((JOB_ITEMS.name, kind) for kind, said in KINDS.items() if said.item_payload),
        *_MEDIA,
        _CLEANUPS,
    ],
)

COUNTERS = (HASHED_FILES, HASHED_BYTES, THUMBNAILS_MADE, FRAMES_MADE)
HISTOGRAMS = (WAITS, RUNS)


def note_waits(machine: Machine, rows: Sequence[Row]) -> None:
    """Count how long rows of one kind, just claimed, have waited by the database's clock."""
    if machine is JOB_ITEMS:
        return  # they wait for each other
    waited = [
        (row["worker_heartbeat_at"] - row["created_at"]) / 1000
        for row in rows
        if row["lease_epoch"] == 1  # of what is claimed again nobody knows since when it was ready
    ]
    WAITS.observe_all(machine.name, kind_of(machine, rows[0]), seconds=waited)


def kind_of(machine: Machine, row: Row) -> str:
    """Return of which kind the work of a row is."""
    return str(row[machine.kind_column]) if machine.kind_column else ""
