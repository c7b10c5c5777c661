"""A worker as a process of its own: it obeys commands, and it ends in good order when asked to."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import command_line
from mediaplane.v1.job_service_pb2 import Job
from mediaplane.v1.worker_service_pb2 import Worker
from tests.support.commands import Commands
from tests.support.control import state
from tests.support.waiting import eventually

LONG_SECONDS = 3600
DEADLINE_SECONDS = 180.0
GRACE_SECONDS = "8"


@contextmanager
def data_plane(commands: Commands, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A data plane that nobody but the test ends."""
    locations = Locations.from_environment(commands.environment)
    with subprocess.Popen(
        command_line("data_plane"),
        env=commands.environment | locations.environment() | settings,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def client(commands: Commands) -> Iterator[Client]:
    with commands.client() as client:
        yield client


def states(client: Client) -> dict[str, str]:
    """The workers and what each does."""
    return {
        worker.name: Worker.State.Name(worker.state).removeprefix("STATE_").lower()
        for worker in client.workers()
    }


def only_worker(client: Client) -> str:
    """Wait for the worker to be there, and return its name."""
    return next(iter(eventually(lambda: states(client), DEADLINE_SECONDS)))


def wait_for(client: Client, job: Job, wanted: str) -> Job:
    eventually(lambda: state(client.job(job.name)) == wanted, DEADLINE_SECONDS)
    return client.job(job.name)


def test_a_worker_pauses_and_resumes_on_command(commands: Commands, client: Client) -> None:
    with data_plane(commands):
        worker = only_worker(client)
        client.command_worker(worker, "pause")
        eventually(lambda: states(client) == {worker: "paused"})
        job = client.create_probe(0)
        client.command_worker(worker, "forensic_dump")
        eventually(lambda: list(commands.state.glob("logs/forensics/*.log")))  # it is awake
        assert state(client.job(job.name)) == "pending"
        client.command_worker(worker, "resume")
        assert f"workers/{wait_for(client, job, 'completed').worker}" == worker
        eventually(lambda: states(client)[worker] in ("idle", "processing"))


def test_a_worker_writes_its_flight_log_on_command(commands: Commands, client: Client) -> None:
    with data_plane(commands):
        worker = only_worker(client)
        wait_for(client, client.create_probe(0), "completed")
        client.command_worker(worker, "forensic_dump")
        eventually(lambda: list(commands.state.glob("logs/forensics/*.log")))
        (dump,) = commands.state.glob("logs/forensics/*.log")
        assert worker.removeprefix("workers/") in dump.name
        assert "Claimed 1 of jobs" in dump.read_text()


def test_a_worker_ends_well_when_told_to_shut_down(commands: Commands, client: Client) -> None:
    with data_plane(commands) as process:
        worker = only_worker(client)
        client.command_worker(worker, "shutdown")
        assert process.wait(DEADLINE_SECONDS) == 0
    assert states(client) == {worker: "offline"}


@pytest.mark.parametrize(
    ("commands", "number"),
    [("sqlite", signal.SIGTERM), ("postgres", signal.SIGTERM), ("sqlite", signal.SIGINT)],
    indirect=["commands"],
)
def test_a_signal_lets_short_work_end_and_puts_long_work_back(
    commands: Commands, client: Client, number: signal.Signals
) -> None:
    settings = {"MEDIAPLANE_SLOTS": "2", "MEDIAPLANE_STOP_GRACE_SECONDS": GRACE_SECONDS}
    with data_plane(commands, **settings) as process:
        worker = only_worker(client)
        long = client.create_probe(LONG_SECONDS)
        wait_for(client, long, "running")
        short = client.create_probe(0.5)
        wait_for(client, short, "running")
        process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == 0
    assert state(client.job(short.name)) == "completed"
    put_back = client.job(long.name)
    assert (state(put_back), put_back.attempts, put_back.worker) == ("pending", 0, "")
    assert states(client) == {worker: "offline"}
    assert list(commands.state.glob("scratch/*")) == []


def test_every_start_of_a_worker_has_an_id_of_its_own(commands: Commands, client: Client) -> None:
    for starts in (1, 2):
        with data_plane(commands, MEDIAPLANE_WORKER_NAME="box") as process:
            eventually(lambda: len(states(client)) == starts, DEADLINE_SECONDS)  # noqa: B023
            process.terminate()
            assert process.wait(DEADLINE_SECONDS) == 0
    assert list(states(client).values()) == ["offline"] * 2
    assert all(name.startswith("workers/box-") for name in states(client))
