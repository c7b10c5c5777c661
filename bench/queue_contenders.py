"""Runs a queue, ours or a peer, in its own processes and measures it from outside."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Self

PEERS_PYTHON = ".venv-bench/bin/python"
# Enough for every one of four workers to get some.
WARM_UP_JOBS = 4_000
# Long enough for every worker to have found nothing and gone to sleep.
SETTLE_SECONDS = 1.0
COUNT_EVERY_SECONDS = 0.02
FINISHED_EVERY_SECONDS = 0.002
GIVE_UP_SECONDS = 180.0
# What a client of PostgreSQL or SQLite answers whose commits survive a power cut.
DURABLE = ("synchronous_commit=on", "synchronous=2 journal_mode=wal")


class Contender(NamedTuple):
    """A queue and the module that plays its roles."""

    name: str
    module: str
    python: str = PEERS_PYTHON
    # A slow one is given this part of the jobs, so that it does not take most of the time.
    part: float = 1.0


PGQUEUER = Contender("PgQueuer", "bench.queue_peers.pgqueuer")
PROCRASTINATE = Contender("Procrastinate", "bench.queue_peers.procrastinate", part=0.1)
HUEY = Contender("Huey", "bench.queue_peers.huey")
OURS = Contender("mediaplane", "bench.queue_ours", sys.executable)


class Process:
    """A client or a worker, talked to in lines."""

    def __init__(self, contender: Contender, role: str, url: str) -> None:
        self._what = f"the {role} of {contender.name}"
        self._process = subprocess.Popen(
            [contender.python, "-m", contender.module, role, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def ask(self, line: str) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.hear()

    def hear(self) -> list[str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._what} ended; what it said stands above.")
        return line.split()


class Running:
    """A contender on one database: its client, and its workers while there are some."""

    def __init__(self, client: Process, workers: list[Process]) -> None:
        self._client = client
        self._workers = workers

    def enqueue(self, count: int, batch: int) -> float:
        """Enqueue and return the seconds it took."""
        began_at, ended_at = map(int, self._client.ask(f"enqueue {count} {batch}"))
        return (ended_at - began_at) / 1e9

    def executed(self) -> int:
        """Return how many jobs the workers have started."""
        return sum(int(worker.ask("count")[1]) for worker in self._workers)

    def drain(self, count: int) -> float:
        """Enqueue in one go and return the seconds from that commit to the last job's end."""
        before = self.executed()
        _, committed_at = map(int, self._client.ask(f"enqueue {count} {count}"))
        give_up_at = time.monotonic() + GIVE_UP_SECONDS
        while self.executed() < before + count:
            self._check(give_up_at, before + count)
            time.sleep(COUNT_EVERY_SECONDS)
        while self._client.ask("finished") != ["1"]:
            self._check(give_up_at, before + count)
            time.sleep(FINISHED_EVERY_SECONDS)
        seconds = time.time_ns() / 1e9 - committed_at / 1e9
        executed = self.executed() - before
        if executed != count:
            raise RuntimeError(f"{executed} jobs ran, not {count}; the figures mean nothing.")
        return seconds

    def start_delays(self, count: int) -> list[float]:
        """Return the milliseconds from just before each enqueue to the first line of its job."""
        (worker,) = self._workers
        delays = []
        for _ in range(count):
            time.sleep(random.uniform(0.005, 0.03))
            began_at = int(self._client.ask("one")[0])
            delays.append((int(worker.hear()[1]) - began_at) / 1e6)
        return delays

    def _check(self, give_up_at: float, expected: int) -> None:
        if time.monotonic() > give_up_at:
            raise RuntimeError(
                f"{self.executed()} of {expected} jobs had started after {GIVE_UP_SECONDS:.0f} s."
            )


@contextmanager
def installed(
    contender: Contender, url: str, role: str = "", workers: int = 0
) -> Iterator[Running]:
    """Prepare an empty database for a contender and yield it, with workers that have started."""
    with ExitStack() as stack:
        client = stack.enter_context(Process(contender, "client", url))
        durability = " ".join(client.ask("install"))
        if durability not in DURABLE:
            raise RuntimeError(f"{contender.name} commits with {durability}, which is not durable.")
        started = [stack.enter_context(Process(contender, role, url)) for _ in range(workers)]
        for worker in started:
            worker.hear()
        yield Running(client, started)


@contextmanager
def working(contender: Contender, url: str, workers: int) -> Iterator[Running]:
    """Yield a contender whose workers are connected, warm and idle."""
    with installed(contender, url, "worker", workers) as running:
        running.drain(int(WARM_UP_JOBS * contender.part))
        time.sleep(SETTLE_SECONDS)
        yield running


@contextmanager
def listening(contender: Contender, url: str) -> Iterator[Running]:
    """Yield a contender with one worker that tells when each job starts."""
    with installed(contender, url, "timed-worker", 1) as running:
        running.start_delays(2)
        time.sleep(SETTLE_SECONDS)
        yield running


def peer_versions(*packages: str) -> list[str]:
    """Return the peers and their versions, as they are installed."""
    script = (
        "import sys; from importlib.metadata import version;"
        "[print(name, version(name)) for name in sys.argv[1:]]"
    )
    command = [PEERS_PYTHON, "-c", script, *packages]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
