"""The two roles of every queue measured: a client that enqueues, a worker that runs what it gets.

Each runs as a process of its own and talks to the benchmark in lines. A client is told `install`,
`enqueue <count> <batch>`, `one` or `finished`; a worker is asked `count` and ends with its input.
"""

import itertools
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol


class Client(Protocol):
    """What a queue has to be able to do for its producers."""

    def install(self) -> str:
        """Prepare an empty database; return how durable a commit of this client is."""

    def enqueue(self, count: int, batch: int) -> None:
        """Enqueue jobs that do nothing, one commit for each batch."""

    def enqueue_one(self) -> None:
        """Enqueue one job in the way an application does."""

    def is_finished(self) -> bool:
        """Tell whether no job waits or runs."""

    def close(self) -> None:
        """Let go of the database."""


class Report:
    """Counts what a worker started, and tells the benchmark."""

    def __init__(self, *, timed: bool, stop: Callable[[], object]) -> None:
        self._timed = timed
        self._stop = stop
        # next() of it cannot be interrupted by another thread, unlike an addition.
        self._next = itertools.count(1).__next__
        self._count = 0

    def started(self) -> None:
        """Note one job; the first line of every job function."""
        if self._timed:
            print("started", time.time_ns(), flush=True)
        self._count = self._next()

    def ready(self) -> None:
        """Say that the worker is about to look for work, and answer from now on."""
        threading.Thread(target=self._answer, name="report", daemon=True).start()

    def _answer(self) -> None:
        print("ready", flush=True)
        for _ in sys.stdin:
            print("count", self._count, flush=True)
        self._stop()


def play(open_client: Callable[[str], Client], work: Callable[[str, bool], None]) -> None:
    """Play the role that the command line names: client, worker or timed-worker."""
    role, url = sys.argv[1:]
    if role == "client":
        serve(open_client(url))
    else:
        work(url, role == "timed-worker")


def serve(client: Client) -> None:
    """Do what the benchmark says until it says no more; answer when it began and ended."""
    for line in sys.stdin:
        match line.split():
            case ["install"]:
                print(client.install(), flush=True)
            case ["finished"]:
                print(int(client.is_finished()), flush=True)
            case ["enqueue", count, batch]:
                began_at = time.time_ns()
                client.enqueue(int(count), int(batch))
                print(began_at, time.time_ns(), flush=True)
            case ["one"]:
                began_at = time.time_ns()
                client.enqueue_one()
                print(began_at, time.time_ns(), flush=True)
            case words:
                raise ValueError(f"a client is not told {words!r}")
    client.close()
