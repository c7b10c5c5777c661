"""An account of every run of a probe, written by the runs themselves, past the database."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import RowMapping

from data_plane.executor import Context, Executor
from data_plane.registry import EXECUTORS
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import JobKind

# What a run does, given the row it was claimed with and what the probe itself would do.
Deed = Callable[[RowMapping, Context, Callable[[], None]], None]


@dataclass(frozen=True)
class Entry:
    """A run began or came to its end; a run that was killed or stopped early has no end."""

    what: str
    table: str
    row_id: int
    epoch: int
    worker: str
    pid: int
    at_ms: int


def entries(path: Path) -> list[Entry]:
    """Return what the runs have written so far."""
    if not path.exists():
        return []
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()]


def witnessed(path: Path, deed: Deed | None = None) -> Executor:
    """Return the executor of probes, with an account of its runs."""
    real = EXECUTORS[JobKind.PROBE]

    def prepare(database: Database, row: RowMapping) -> tuple[RowMapping, Any]:
        return row, real.prepare(database, row)

    def run(prepared: tuple[RowMapping, Any], ctx: Context) -> None:
        row, task = prepared
        _write(path, "start", row)
        if deed is None:
            real.run(task, ctx)
        else:
            deed(row, ctx, lambda: real.run(task, ctx))
        _write(path, "end", row)

    return Executor(prepare, run, real.record, real.paths)


def _write(path: Path, what: str, row: RowMapping) -> None:
    table = "job_items" if "job_id" in row else "jobs"
    entry = Entry(what, table, row["id"], row["lease_epoch"], row["worker_id"], os.getpid(),
                  time.time_ns() // 1_000_000)  # fmt: skip
    # One write to a file open for appending: processes do not mix their lines.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(asdict(entry)).encode() + b"\n")
    finally:
        os.close(descriptor)
