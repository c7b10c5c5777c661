"""Runs programs to their end and tells what they took: time, processors and memory."""

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SAMPLE_SECONDS = 0.05
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Run(NamedTuple):
    """What one run of a program took, that of the services it called included."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: bytes


# The runs of each contender, round by round.
Runs = Mapping[str, Sequence[Run]]


class Use(NamedTuple):
    """What processes have used until now, and what they hold."""

    cpu_seconds: float
    resident_bytes: int


class Peak:
    """The most memory that some processes and all they started held at one moment."""

    def __init__(self) -> None:
        self.resident_bytes = 0


def run(command: Sequence[str], stdin: bytes = b"", services: Sequence[int] = ()) -> Run:
    """Run a program to its end, beside services that it calls and that go on running."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(stdin)
        given.seek(0)
        idle = _use(services)
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=said)
        assert process.stdout is not None
        with process.stdout, _watched([process.pid, *services]) as peak:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            why = said.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command[:6])} ended with {process.returncode}: {why}")
    cpu_seconds = usage.ru_utime + usage.ru_stime + _use(services).cpu_seconds - idle.cpu_seconds
    return Run(seconds, cpu_seconds, peak.resident_bytes, output)


def times(runs: Runs, mine: str, other: str, what: str = "seconds") -> float:
    """Return how many times as much one takes as another, as the median of the rounds."""
    pairs = zip(runs[mine], runs[other], strict=True)
    return float(statistics.median(getattr(a, what) / getattr(b, what) for a, b in pairs))


def print_runs(runs: Runs) -> None:
    """Print a line for each: time, processor time and memory, and each beside the first line's."""
    first = next(iter(runs))
    for name, found in runs.items():
        figures = " ".join(
            f"{statistics.median(getattr(run, what) for run in found) / unit:>9.{digits}f} {word}"
            f" {f'({times(runs, name, first, what):.2f})':>8}"
            for what, unit, digits, word in (
                ("seconds", 1, 2, "s"),
                ("cpu_seconds", 1, 2, "s CPU"),
                ("peak_bytes", 1e6, 0, "MB"),
            )
        )
        print(f"  {name:<13}{figures}")


@contextmanager
def _watched(processes: Sequence[int]) -> Iterator[Peak]:
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while True:
            peak.resident_bytes = max(peak.resident_bytes, _use(processes).resident_bytes)
            if ended.wait(SAMPLE_SECONDS):
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _use(processes: Sequence[int]) -> Use:
    """Return the use of these processes and of all that they have started."""
    ticks = pages = 0
    waiting = list(processes)
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            started = [listed.read_text() for listed in place.glob("task/*/children")]
        except OSError:
            continue  # ended meanwhile
        # Its own, and that of the children which have ended.
        ticks += sum(map(int, fields[11:15]))
        pages += int(fields[21])
        waiting += [int(child) for children in started for child in children.split()]
    return Use(ticks * TICK_SECONDS, pages * PAGE_BYTES)
