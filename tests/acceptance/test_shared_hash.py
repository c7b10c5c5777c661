"""Two data planes share one hash job, and one of them is killed in the middle of it."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.engine import RowMapping

from control_plane.policy.shards import by_id
from control_plane.store.hashing import RUN_FILES
from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import job_items, jobs, library_files
from mediaplane.protocol.values import Plane
from tests.acceptance.test_worker_process import DEADLINE_SECONDS, data_plane, states, wait_for
from tests.support.commands import Commands
from tests.support.waiting import eventually

FILES = 60_000
FILE_BYTES = 64
RUNS = [
    (run[0], run[-1], len(run), len(run) * FILE_BYTES)
    for run in (range(first, first + RUN_FILES) for first in range(1, FILES, RUN_FILES))
]
SHARDS = [shard.files for shard in by_id(RUNS)]
SLOTS = 1
SETTINGS = {
    "MEDIAPLANE_SLOTS": str(SLOTS),
    "MEDIAPLANE_PRIORITY_SLOTS": "0",
    "MEDIAPLANE_LEASE_SECONDS": "600",
    # Slow enough for a kill in the middle: at most two shards a second, by both together.
    "MEDIAPLANE_HASH_BYTES_PER_SECOND": str(2 * max(SHARDS) * FILE_BYTES),
}


@pytest.fixture
def client(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("MEDIAPLANE_RECOVERY_SECONDS", "0.2")
    monkeypatch.setenv("MEDIAPLANE_RETRY_BASE_SECONDS", "0.2")
    with commands.client() as client:
        yield client


@pytest.fixture
def database(commands: Commands) -> Iterator[Database]:
    locations = Locations.from_environment(commands.environment)
    database = Database(locations.database_url, Plane.CONTROL)
    yield database
    database.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("library")
    for number in range(FILES):
        (root / f"{number}.txt").write_text(f"{number:0{FILE_BYTES}}")
    return root


def shards(database: Database) -> dict[int, RowMapping]:
    with database.read() as conn:
        return {row["id"]: row for row in conn.execute(select(job_items)).mappings()}


def shards_of(database: Database, worker: str, status: str) -> dict[int, RowMapping]:
    return {
        number: row
        for number, row in shards(database).items()
        if row["status"] == status and (row["worker_id"] or "").startswith(worker)
    }


def lapse(database: Database, worker: str) -> None:
    """End the leases of a worker, as if their time were over."""
    with database.write() as conn:
        for table in (jobs, job_items):
            held = table.c.worker_id.startswith(worker) & table.c.lease_expires_at.is_not(None)
            conn.execute(update(table).where(held).values(lease_expires_at=1))


def hashed_files(database: Database) -> int:
    query = select(func.count(library_files.c.content_hash.distinct()))
    with database.read() as conn:
        return int(conn.execute(query).scalar_one())


def add_scanned_library(client: Client, root: Path) -> None:
    client.add_library("library", bytes(root), "library")
    client.change_library("library", hash_policy="HASH_POLICY_ALL")
    wait_for(client, client.scan("library"), "completed")


@contextmanager
def two_data_planes(commands: Commands) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Two data planes by the names of their workers, each with an address of its own."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                data_plane(
                    commands,
                    MEDIAPLANE_WORKER_NAME=name,
                    MEDIAPLANE_DATA_ADDRESS=f"unix:{commands.state}/{name}.sock",
                    **SETTINGS,
                )
            )
            for name in ("one", "two")
        }


@pytest.mark.parametrize("holds_job", [False, True], ids=["helper", "holder"])
def test_of_a_killed_data_plane_only_the_shards_in_flight_are_hashed_again(
    commands: Commands, client: Client, database: Database, root: Path, *, holds_job: bool
) -> None:
    with two_data_planes(commands) as processes:
        eventually(lambda: len(states(client)) == 2, DEADLINE_SECONDS)
        add_scanned_library(client, root)
        job = client.hash("library")
        # One of the two holds the job itself and does shards of it, the other one helps.
        holder = eventually(lambda: client.job(job.name).worker).split("-")[0]
        (helper,) = processes.keys() - {holder}
        victim, survivor = (holder, helper) if holds_job else (helper, holder)
        eventually(
            lambda: (
                shards_of(database, victim, "completed")
                and shards_of(database, survivor, "completed")
                and shards_of(database, victim, "running")
            ),
            DEADLINE_SECONDS,
        )
        processes[victim].kill()
        assert processes[victim].wait() == -signal.SIGKILL
        at_kill = shards(database)
        in_flight = shards_of(database, victim, "running")
        assert 1 <= len(in_flight) <= SLOTS
        assert any(row["status"] == "pending" for row in at_kill.values()), "not in the middle"
        lapse(database, victim)
        ended = wait_for(client, job, "completed")
    assert ended.attempts == int(holds_job)
    after = shards(database)
    assert len(after) == len(SHARDS)
    assert {row["status"] for row in after.values()} == {"completed"}
    again = {number for number, row in after.items() if row["lease_epoch"] > 1}
    assert again == set(in_flight)
    assert all(after[number]["worker_id"].startswith(survivor) for number in again)
    done = [row for row in at_kill.values() if row["status"] == "completed"]
    assert [after[row["id"]] for row in done] == done
    assert hashed_files(database) == FILES
