"""Promises of large libraries: the memory of the planes, two workers on one job, and a purge."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench import databases, purging, sharing
from bench.dedup import COMMAND
from bench.verdicts import Verdicts, title
from mediaplane.locations import Locations
from mediaplane.planes import Plane, control_plane, data_plane, running

FOLDERS = 5_000
LIMIT_MB = 400
SAMPLE_SECONDS = 0.1
# Writing this to clear_refs of a process forgets its peak.
FORGET_PEAK = "5"


class Size(NamedTuple):
    """How much is measured."""

    files: int
    rounds: int
    hashed_files: int
    purged_rows: int


class Peaks:
    """The most memory of a plane and of what it has started, watched from the outside."""

    def __init__(self, plane: Plane) -> None:
        self.name = plane.name
        self._process = int(plane.life.read_text())
        self._children_mb = 0.0

    def forget(self) -> None:
        """Begin anew."""
        self._children_mb = 0.0
        Path(f"/proc/{self._process}/clear_refs").write_text(FORGET_PEAK)

    def look(self) -> None:
        """Add up the children that live now: their peaks end with them."""
        alive_mb = 0.0
        own = _command(self._process)
        for listed in Path(f"/proc/{self._process}/task").glob("*/children"):
            with suppress(OSError):  # ended meanwhile
                children = map(int, listed.read_text().split())
                # One that is just being started still is the plane, and shares its memory.
                alive_mb += sum(_peak_mb(child) for child in children if _command(child) != own)
        self._children_mb = max(self._children_mb, alive_mb)

    def measured(self) -> dict[str, float]:
        """Return the peaks in MB; that of the children is the sum of those alive at one moment."""
        peaks = {self.name: _peak_mb(self._process)}
        if self._children_mb:
            peaks[f"{self.name}, its children"] = self._children_mb
        return peaks


def main() -> int:
    """Measure, print and judge."""
    size = _size()
    verdicts = Verdicts()
    print(f"processors: {os.cpu_count()}; rounds: {size.rounds}, in turn; median")
    with tempfile.TemporaryDirectory(
        prefix="mediaplane-bench-", dir=os.environ.get("BENCH_DIR")
    ) as place:
        _measure_memory(Path(place), size.files, verdicts)
    with databases.postgresql() as (fresh, settings):
        print("\nPostgreSQL:", ", ".join(f"{name}={value}" for name, value in settings.items()))
        sharing.measure(fresh, size.rounds, size.hashed_files, verdicts)
        purging.measure("PostgreSQL", fresh, size.purged_rows, verdicts)
    with databases.sqlite() as fresh:
        purging.measure("SQLite", fresh, size.purged_rows, verdicts)
    missed = verdicts.missed
    print(f"\n{'MISSED: ' + '; '.join(missed) if missed else 'every promise was kept'}")
    return int(bool(missed))


def _size() -> Size:
    is_quick = os.environ.get("QUICK", "") not in ("", "0")
    rounds = int(os.environ.get("ROUNDS") or (1 if is_quick else 5))
    if is_quick:
        return Size(50_000, rounds, 12, 100_000)
    return Size(1_000_000, rounds, 12, 1_000_000)


def _measure_memory(place: Path, files: int, verdicts: Verdicts) -> None:
    root, state = place / "library", place / "state"
    _make_files(root, files)
    locations = Locations.from_environment({"MEDIAPLANE_STATE": str(state)})
    planes = [control_plane(locations), data_plane(locations)]
    with running(planes):
        peaks = [Peaks(plane) for plane in planes]
        _run(state, "library", "add", "bench", str(root))
        for stage, command in {
            "first scan": ("scan", "bench"),
            "rescan": ("scan", "bench"),
            "hash": ("hash", "bench"),
            "file list": ("file", "list", "bench"),
            "duplicates list": ("duplicates", "list"),
        }.items():
            title(f"{files:,} files, SQLite: {stage}")
            began = time.perf_counter()
            with _watched(peaks):
                listed = _run(state, *command)
            print(f"  {time.perf_counter() - began:.1f} s")
            _check(stage, listed, files)
            for peak in peaks:
                for name, peak_mb in peak.measured().items():
                    verdicts.at_most(f"{stage}: {name}, MB", peak_mb, LIMIT_MB)


@contextmanager
def _watched(peaks: list[Peaks]) -> Iterator[None]:
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            for peak in peaks:
                peak.look()

    for peak in peaks:
        peak.forget()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _check(stage: str, listed: Any, files: int) -> None:
    """Refuse figures of listings that are not whole."""
    wanted = {"file list": ("files", files), "duplicates list": ("groups", files // 2)}
    noun, expected = wanted.get(stage, ("", 0))
    if noun and len(listed[noun]) != expected:
        raise RuntimeError(f"{stage}: {len(listed[noun])} of {expected} {noun} were listed.")


def _make_files(root: Path, files: int) -> None:
    """Make files of a few bytes, two of each content."""
    available = os.statvfs(root.parent).f_favail
    if 0 < available < files * 1.1:  # 0: the file system has no limit
        raise RuntimeError(
            f"{root.parent} has room for {available:,} files only; set BENCH_DIR to a folder on"
            " a disk with more."
        )
    per_folder = -(-files // FOLDERS)
    for first in range(0, files, per_folder):
        folder = f"{root}/{first // per_folder:05}"
        os.makedirs(folder)
        for number in range(first, min(first + per_folder, files)):
            with open(f"{folder}/{number:07}.jpg", "wb", buffering=0) as file:
                file.write(b"%d" % (number // 2))


def _run(state: Path, *arguments: str) -> Any:
    """Run a command of ours with its result as JSON."""
    done = subprocess.run(
        [COMMAND, *arguments, "--json", "--state", str(state)], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def _command(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def _peak_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    # One that has ended and was not waited for yet has none.
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return sum(map(int, peaks)) / 1024


if __name__ == "__main__":
    sys.exit(main())
