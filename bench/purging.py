"""Promise: while a large library is forgotten for good, nobody else waits for long."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import text

from bench.claim_cost import SERIES
from bench.databases import Fresh
from bench.dedup import COMMAND
from bench.pages import ADD_GROUPS, CONTENT
from bench.verdicts import Verdicts, percentile, title
from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import control_plane, running
from mediaplane.protocol import migration
from mediaplane.protocol.database import Database
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import Plane
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from tests.support.files import GROUPS

LIMIT_MS = 200
BEFORE_SECONDS = 20.0
KEPT_FILES = 2_000
PAGE_ROWS = 50

PATH = {
    "sqlite": "CAST(printf('%032d', i) AS BLOB)",
    "postgresql": "convert_to(lpad(i::text, 32, '0'), 'UTF8')",
}

Calls = dict[str, Callable[[], Any]]


def measure(name: str, fresh: Fresh, rows: int, verdicts: Verdicts) -> None:
    """Ask a control plane for this and that, first in peace and then during a purge."""
    title(f"Calls during `trash empty` of {rows:,} files, {name}")
    with fresh() as url, tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as state:
        _fill(url, rows)
        environment = {"MEDIAPLANE_STATE": state, "MEDIAPLANE_DATABASE_URL": url}
        locations = Locations.from_environment(environment)
        with running([control_plane(locations)]), Client(locations.control_address) as client:
            calls = _calls(client)
            deadline = time.perf_counter() + BEFORE_SECONDS
            before = _ask(calls, lambda: time.perf_counter() < deadline)
            began = time.perf_counter()
            with subprocess.Popen(
                [COMMAND, "trash", "empty", "purged", "--yes"],
                env=os.environ | environment,
                stdout=subprocess.DEVNULL,
            ) as purge:
                during = _ask(calls, lambda: purge.poll() is None)
            seconds = time.perf_counter() - began
            if purge.returncode != 0 or list(client.libraries(in_trash=True)):
                raise RuntimeError(f"The purge ended with {purge.returncode} and left something.")
    print(f"  {'':<20} {'before: p50':>12} {'p99':>7} {'worst':>7}", end="")
    print(f" {'during: p50':>12} {'p99':>7} {'worst':>7} ms, {seconds:.0f} s")
    for call in calls:
        print(f"  {call:<20}{_figures(before[call])}{_figures(during[call])}")
    for call in calls:
        verdicts.at_most(f"{call} during a purge, {name}, worst ms", max(during[call]), LIMIT_MS)


def _calls(client: Client) -> Calls:
    job = client.create_probe(0)
    groups = duplicates_pb.ListDuplicateGroupsRequest(page_size=PAGE_ROWS)
    return {
        "ListLibraries": lambda: list(client.libraries()),
        "GetJob": partial(client.job, job.name),
        "ListDuplicateGroups": partial(client.duplicate_service.ListDuplicateGroups, groups),
        "CreateJob": partial(client.create_probe, 0),
    }


def _ask(calls: Calls, goes_on: Callable[[], bool]) -> dict[str, list[float]]:
    """Make the calls in turn, and return how many milliseconds each took."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    while goes_on():
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            taken[name].append((time.perf_counter() - began) * 1000)
    return taken


def _figures(values: list[float]) -> str:
    median, high = statistics.median(values), percentile(values, 99)
    return f" {median:>12.2f} {high:>7.1f} {max(values):>7.1f}"


def _fill(url: str, rows: int) -> None:
    """Add a large library that lies in the trash, and one with groups that are listed."""
    migration.upgrade(url)
    apply_grants(url)
    database = Database(url, Plane.CONTROL)
    _add_library(database, "purged", rows, deleted_at="1")
    _add_library(database, "kept", KEPT_FILES, deleted_at="NULL")
    with database.write() as conn:
        conn.execute(
            text(
                f"{ADD_GROUPS} SELECT hash_algorithm, content_hash, file_count, size_bytes,"
                f" total_size_bytes, total_size_bytes - size_bytes, 0 FROM ({GROUPS}) AS g"
            )
        )
        conn.execute(text("ANALYZE"))
    database.close()


def _add_library(database: Database, slug: str, files: int, deleted_at: str) -> None:
    content = CONTENT[database.dialect]
    series = SERIES[database.dialect].format(count=files)
    # Rows lie in the order of their paths, as a scan adds them, but not in that of their contents.
    path, shared = PATH[database.dialect], content.format(n="i / 2")
    root = content.format(n=len(slug))
    with database.write() as conn:
        conn.execute(
            text(
                "INSERT INTO libraries (slug, name, absolute_path, created_at, updated_at,"
                f" deleted_at) SELECT '{slug}', '{slug}', {root}, 0, 0, {deleted_at}"
            )
        )
        conn.execute(
            text(
                "INSERT INTO library_files (library_id, rel_path, size_bytes, mtime_ns, device,"
                " inode, hash_algorithm, content_hash, prefix_hash, created_at, updated_at)"
                f" SELECT '{slug}', {path}, 1 + i / 2 % 1000, 1, 1, i, 'blake3', {shared},"
                f" {shared}, 0, 0 FROM (SELECT i + 1 AS i FROM ({series}) AS n) AS n"
            )
        )
