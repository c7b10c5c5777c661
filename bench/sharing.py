"""Promise: two workers finish one hash job nearly twice as fast as one."""

import os
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench.databases import Fresh
from bench.verdicts import Verdicts, row, title
from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import command_line, control_plane, running
from mediaplane.protocol import migration
from mediaplane.protocol.grants import apply_grants
from mediaplane.v1.job_service_pb2 import Job
from mediaplane.v1.worker_service_pb2 import Worker
from tests.support.postgres import memory_directory
from tests.support.waiting import eventually

# A shard ends after 1 GiB, so each of these files is one: enough of them that two workers end
# nearly together. They are holes, so that neither the disk nor the memory has a part in it.
FILE_BYTES = 1 << 30
LIBRARY = "bench"
LIMIT = 1.6
DEADLINE_SECONDS = 300.0
# One piece of work at a time, so that one worker cannot use more than one processor.
SETTINGS = {"MEDIAPLANE_SLOTS": "1", "MEDIAPLANE_PRIORITY_SLOTS": "0"}


def measure(fresh: Fresh, rounds: int, files: int, verdicts: Verdicts) -> None:
    """Hash the same files by one worker and by two, in turn, each time in a fresh database."""
    title(f"One hash job, {files:,} files of {FILE_BYTES >> 30} GiB, SHA-256, PostgreSQL")
    taken: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(prefix="mediaplane-bench-", dir=memory_directory()) as place:
        root = Path(place, "library")
        _make_files(root, files)
        for number in range(rounds):
            # Forwards and backwards in turn: a slow minute of the machine meets both.
            for workers in (1, 2) if number % 2 == 0 else (2, 1):
                taken[workers].append(_hash_seconds(fresh, root, files, workers))
    row("1 worker", taken[1], "s")
    row("2 workers", taken[2], "s")
    ratio = statistics.median(one / two for one, two in zip(taken[1], taken[2], strict=True))
    verdicts.at_least("two workers on one job, times as fast as one", ratio, LIMIT)


def _hash_seconds(fresh: Fresh, root: Path, files: int, workers: int) -> float:
    with fresh() as url, tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as state:
        migration.upgrade(url)
        apply_grants(url)
        environment = {"MEDIAPLANE_STATE": state, "MEDIAPLANE_DATABASE_URL": url}
        locations = Locations.from_environment(environment)
        with (
            running([control_plane(locations)]),
            Client(locations.control_address) as client,
            _data_planes(locations, workers),
        ):
            eventually(partial(_are_idle, client, workers), DEADLINE_SECONDS)
            client.add_library(LIBRARY, bytes(root), LIBRARY)
            client.change_library(LIBRARY, hash_policy="HASH_POLICY_ALL")
            client.change_library(LIBRARY, hash_algorithm="HASH_ALGORITHM_SHA256")
            _ended(client, client.scan(LIBRARY))
            job = _ended(client, client.hash(LIBRARY))
            shares = Counter(item.worker for item in client.job_items(job.name))
    if job.completed_items != files or len(shares) != workers:
        raise RuntimeError(f"{job.completed_items} of {files} files were hashed, by {shares}.")
    return (job.end_time.ToNanoseconds() - job.create_time.ToNanoseconds()) / 1e9


@contextmanager
def _data_planes(locations: Locations, count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(count):
            address = f"unix:{locations.state}/data-{number}.sock"
            environment = os.environ | locations.environment() | SETTINGS
            process = stack.enter_context(
                subprocess.Popen(
                    command_line("data_plane"),
                    env=environment | {"MEDIAPLANE_DATA_ADDRESS": address},
                    stdin=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    # As services are started: Linux shares the processors between sessions, and
                    # within one two workers would get no more than one does on a busy machine.
                    start_new_session=True,
                )
            )
            stack.callback(process.terminate)
        yield


def _are_idle(client: Client, workers: int) -> bool:
    return [worker.state for worker in client.workers()] == [Worker.STATE_IDLE] * workers


def _ended(client: Client, job: Job) -> Job:
    """Wait without asking: questions would take the processors that are measured."""
    *_, last = client.watch_job(job.name)
    return last


def _make_files(root: Path, files: int) -> None:
    root.mkdir()
    for number in range(files):
        with (root / f"{number:02}.bin").open("wb") as file:
            file.truncate(FILE_BYTES)
