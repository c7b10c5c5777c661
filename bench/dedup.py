"""Promises of the duplicate search, each measured beside the tools people use, in one run."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import corpora
from bench.corpora import Corpus
from bench.verdicts import Verdicts, title

SAMPLE_SECONDS = 0.02
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
PEERS = {
    "jdupes -Q": ["jdupes", "-q", "-r", "-Q"],
    "jdupes": ["jdupes", "-q", "-r"],
    "rdfind": ["rdfind", "-dryrun", "true", "-outputname", "/dev/null"],
}
OURS = "mediaplane"
SERVICE = "as a service"
COMMAND = str(Path(sys.executable).with_name("mediaplane"))


class Run(NamedTuple):
    """What one run of a tool took."""

    seconds: float
    peak_bytes: int
    output: bytes


class Size(NamedTuple):
    """How much is measured."""

    rounds: int
    small: int
    media: int
    adversaries: int


def main() -> int:
    """Measure, print and judge."""
    missing = [tool for tool in ("jdupes", "rdfind", "b3sum") if shutil.which(tool) is None]
    if missing:
        print(f"Please install: apt-get install --no-install-recommends {' '.join(missing)}")
        return 2
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="mediaplane-bench-", dir=_disk()) as place:
        _measure(Path(place), _size(), verdicts)
    missed = verdicts.missed
    print(f"\n{'MISSED: ' + '; '.join(missed) if missed else 'every promise was kept'}")
    return int(bool(missed))


def _size() -> Size:
    is_quick = os.environ.get("QUICK", "") not in ("", "0")
    rounds = int(os.environ.get("ROUNDS") or (1 if is_quick else 3))
    return Size(rounds, 10_000, 150, 100) if is_quick else Size(rounds, 200_000, 3_000, 1_000)


def _disk() -> str | None:
    return os.environ.get("BENCH_DIR")


def _measure(place: Path, size: Size, verdicts: Verdicts) -> None:
    print(f"processors: {os.cpu_count()}; rounds: {size.rounds}, in turn; median")
    small = corpora.small(place / "small", size.small)
    media = corpora.media(place / "media", size.media)
    adversaries = [
        corpora.same_size(place / "same-size", size.adversaries * 5),
        corpora.last_byte(place / "last-byte", size.adversaries),
    ]
    for corpus in (small, media, *adversaries):
        # The fastest peer is the one beside which we are slowest.
        ratios = _compare(corpus, "cold cache", size.rounds, place, before=_drop_caches)
        verdicts.at_most(f"{corpus.name}, cold, times the fastest peer", max(ratios.values()), 1)
    warm = _compare(media, "warm cache", size.rounds, place)
    verdicts.at_most("media, warm, times jdupes -Q", warm["jdupes -Q"], 1.1)
    warm = _compare(small, "warm cache", size.rounds, place)
    verdicts.at_most("small, warm, times jdupes -Q", warm["jdupes -Q"], 2)
    _compare_rescan(small, size.rounds, place, verdicts)
    for corpus, limit in ((media, 0.95), (small, 1.5)):
        _compare_hashing(corpus, size.rounds, place, verdicts, limit)


def _compare(
    corpus: Corpus,
    what: str,
    rounds: int,
    place: Path,
    before: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Run all tools in turn; return how many times each peer's time ours is."""
    title(f"{corpus.name}: {corpus.files:,} files, {corpus.size_bytes / 1e9:.1f} GB, {what}")
    tools: dict[str, Callable[[], Run]] = {
        name: partial(_run, [*command, str(corpus.folder)]) for name, command in PEERS.items()
    }
    tools[OURS] = partial(_first_run, corpus, place)
    runs: dict[str, list[Run]] = {name: [] for name in tools}
    for _ in range(rounds):
        for name, tool in tools.items():
            before()
            runs[name].append(tool())
    _check_groups(runs)
    ratios = {
        peer: statistics.median(
            ours.seconds / theirs.seconds
            for ours, theirs in zip(runs[OURS], runs[peer], strict=True)
        )
        for peer in PEERS
    }
    for name, found in runs.items():
        _print(name, found, _beside(ratios[name]) if name in ratios else "")
    return ratios


def _compare_rescan(corpus: Corpus, rounds: int, place: Path, verdicts: Verdicts) -> None:
    """Compare a scan by planes that run already, as a service does, and one from nothing."""
    title(f"{corpus.name}: rescan, nothing changed, warm cache")
    state = place / "state"
    _up(corpus, state)
    runs: dict[str, list[Run]] = {"jdupes -Q": [], SERVICE: [], OURS: []}
    for _ in range(rounds):
        runs["jdupes -Q"].append(_run([*PEERS["jdupes -Q"], str(corpus.folder)]))
        with _serving(state):
            runs[SERVICE].append(_ours(state, "scan", corpus.folder.name, "--json"))
        runs[OURS].append(_up(corpus, state))
    shutil.rmtree(state)
    for name, found in runs.items():
        _print(name, found, "" if name in PEERS else f"{_times(runs, name):.2f} times jdupes -Q")
    verdicts.at_most("rescan by a service, times jdupes -Q", _times(runs, SERVICE), 0.6)


def _times(runs: dict[str, list[Run]], name: str) -> float:
    pairs = zip(runs[name], runs["jdupes -Q"], strict=True)
    return statistics.median(mine.seconds / other.seconds for mine, other in pairs)


@contextmanager
def _serving(state: Path) -> Iterator[None]:
    """Have both planes run until the block ends."""
    empty = state.parent / "empty"
    empty.mkdir(exist_ok=True)
    (empty / "file").touch()
    command = [COMMAND, "up", str(empty), "--state", str(state)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as planes:
        assert planes.stderr is not None
        for line in planes.stderr:
            if b"Serving" in line:
                break
        try:
            yield
        finally:
            planes.send_signal(signal.SIGINT)


def _compare_hashing(
    corpus: Corpus, rounds: int, place: Path, verdicts: Verdicts, limit: float
) -> None:
    """Compare the hash job alone, with all files hashed, with b3sum over the same files."""
    title(f"{corpus.name}: hash of every file, warm cache")
    ours, theirs = [], []
    names = b"\0".join(os.fsencode(path) for path in sorted(corpus.folder.rglob("*.bin")))
    for _ in range(rounds):
        theirs.append(_run(["xargs", "-0", "b3sum"], names))
        ours.append(_hash_seconds(corpus, place / "state"))
        shutil.rmtree(place / "state")
    pairs = zip(ours, theirs, strict=True)
    times = statistics.median(other.seconds / mine for mine, other in pairs)
    _print("b3sum", theirs, _beside(1 / times))
    print(f"  {OURS:<12} {statistics.median(ours):>8.2f} s")
    verdicts.at_least(f"hashing of {corpus.name}, times b3sum", times, limit)


def _first_run(corpus: Corpus, place: Path) -> Run:
    state = place / "state"
    try:
        return _up(corpus, state)
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _up(corpus: Corpus, state: Path) -> Run:
    """Find the duplicates as a user does, from the start of both planes to their end."""
    return _ours(state, "up", str(corpus.folder), "--once", "--json")


def _ours(state: Path, *arguments: str) -> Run:
    return _run([COMMAND, *arguments, "--state", str(state)])


def _hash_seconds(corpus: Corpus, state: Path) -> float:
    """Return how long the hash job of a library whose files are all hashed took."""
    _ours(state, "library", "add", "bench", str(corpus.folder))
    _ours(state, "library", "set", "bench", "--hash-policy", "all")
    _ours(state, "scan", "bench", "--json")
    _ours(state, "hash", "bench", "--json")
    (job,) = json.loads(_ours(state, "job", "list", "--kind", "hash", "--json").output)["jobs"]
    began, ended = (datetime.fromisoformat(job[key]) for key in ("create_time", "end_time"))
    if job["completed_items"] != corpus.files:
        raise RuntimeError(f"{job['completed_items']} of {corpus.files} files were hashed.")
    return (ended - began).total_seconds()


def _run(command: Sequence[str], stdin: bytes = b"") -> Run:
    """Run a tool to its end, and watch the memory of all its processes."""
    peak = 0
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        tempfile.TemporaryFile() as given,
    ):
        given.write(stdin)
        given.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=output, stderr=errors)
        while process.poll() is None:
            peak = max(peak, _resident_bytes(process.pid))
            time.sleep(SAMPLE_SECONDS)
        seconds = time.perf_counter() - began
        output.seek(0)
        found = output.read()
        errors.seek(0)
        if process.returncode != 0:
            said = errors.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command[:6])} ended with {process.returncode}: {said}")
    return Run(seconds, peak, found)


def _resident_bytes(root: int) -> int:
    """Return the memory of a process and of all that it has started."""
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        process = int(place.name)
        children.setdefault(int(fields[1]), []).append(process)
        resident[process] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += resident.get(process, 0)
        waiting += children.get(process, [])
    return total


def _check_groups(runs: dict[str, list[Run]]) -> None:
    """Refuse to compare tools that do not find the same."""
    theirs = _jdupes_groups(runs["jdupes -Q"][0].output)
    ours = json.loads(runs[OURS][0].output)["groups"]
    if ours != theirs:
        raise RuntimeError(f"mediaplane finds {ours} groups, jdupes {theirs}.")


def _jdupes_groups(output: bytes) -> int:
    return sum(1 for group in output.split(b"\n\n") if group.strip())


def _drop_caches() -> None:
    os.sync()
    try:
        DROP_CACHES.write_text("3")
    except OSError as error:
        raise RuntimeError(f"The cache can only be emptied by root: {error}") from None


def _beside(times: float) -> str:
    return f"mediaplane takes {times:.2f} times as long"


def _print(name: str, runs: Sequence[Run], note: str = "") -> None:
    seconds = statistics.median(run.seconds for run in runs)
    peak = statistics.median(run.peak_bytes for run in runs) / 1e6
    print(f"  {name:<12} {seconds:>8.2f} s {peak:>8.0f} MB   {note}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
