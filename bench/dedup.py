"""Promises of the duplicate search, each measured beside the tools people use, in one run."""

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import corpora
from bench.corpora import Corpus
from bench.processes import Run, Runs, print_runs, run, times
from bench.verdicts import Verdicts, title
from mediaplane.locations import Locations
from mediaplane.planes import control_plane, data_plane, running

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
JDUPES = "jdupes -Q"
PEERS = {
    JDUPES: ["jdupes", "-q", "-r", "-Q"],
    "jdupes": ["jdupes", "-q", "-r"],
    "rdfind": ["rdfind", "-dryrun", "true", "-outputname", "/dev/null"],
}
# What a search takes that hashes every file which another one has the size of.
LIMIT = "b3sum, sizes"
OURS = "mediaplane"
FROM_NOTHING = "from nothing"
COMMAND = str(Path(sys.executable).with_name("mediaplane"))

# Does its work over a folder.
Tool = Callable[[Path], Run]
# Makes a tool ready for one run, which is not part of what is measured.
Contender = Callable[[], AbstractContextManager[Tool]]


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
    size = _size()
    verdicts = Verdicts()
    print(f"processors: {os.cpu_count()}; rounds: {size.rounds}, in turn; median")
    print("time, processor time and most memory; each likewise as times that of the first line")
    with tempfile.TemporaryDirectory(
        prefix="mediaplane-bench-", dir=os.environ.get("BENCH_DIR")
    ) as place:
        Comparison(Path(place), size.rounds, verdicts).measure(size)
    missed = verdicts.missed
    print(f"\n{'MISSED: ' + '; '.join(missed) if missed else 'every promise was kept'}")
    return int(bool(missed))


def _size() -> Size:
    is_quick = os.environ.get("QUICK", "") not in ("", "0")
    rounds = int(os.environ.get("ROUNDS") or (1 if is_quick else 3))
    return Size(rounds, 10_000, 150, 100) if is_quick else Size(rounds, 200_000, 3_000, 10_000)


class Comparison:
    """The comparisons of one run, in one directory."""

    def __init__(self, place: Path, rounds: int, verdicts: Verdicts) -> None:
        self._place = place
        self._rounds = rounds
        self._verdicts = verdicts
        # Programs are run over it first: what is cold or not is the library, not the program.
        self._trial = corpora.small(place / "trial", 1)

    def measure(self, size: Size) -> None:
        """Measure corpus by corpus, so that no other one takes the cache of a warm one."""
        with self._corpus(corpora.same_size, size.adversaries * 5) as corpus:
            self._search_cold(corpus)
        with self._corpus(corpora.last_byte, size.adversaries) as corpus:
            self._search_cold(corpus)
        with self._corpus(corpora.small, size.small) as corpus:
            self._search_cold(corpus)
            self._search_warm(corpus, 2)
            self._rescan(corpus)
            self._hash(corpus, 1.5)
        with self._corpus(corpora.media, size.media) as corpus:
            self._search_cold(corpus)
            self._search_warm(corpus, 1.1)
            self._hash(corpus, 0.95)

    @contextmanager
    def _corpus(self, write: Callable[[Path, int], Corpus], files: int) -> Iterator[Corpus]:
        folder = self._place / "corpus"
        try:
            yield write(folder, files)
        finally:
            shutil.rmtree(folder)

    def _search_cold(self, corpus: Corpus) -> None:
        title(f"{corpus.title}: search, cold cache")
        runs = self._take_turns(corpus, self._searches(), before=_drop_caches)
        _check_groups(runs)
        # The fastest peer is the one beside which we are slowest.
        ratio = max(times(runs, OURS, peer) for peer in PEERS)
        self._verdicts.at_most(f"{corpus.name}, cold, times the fastest peer", ratio, 1)

    def _search_warm(self, corpus: Corpus, limit: float) -> None:
        title(f"{corpus.title}: search, warm cache")
        corpora.warm(corpus)
        limit_of_hashing = {LIMIT: partial(_b3sum, _of_shared_sizes)}
        runs = self._take_turns(corpus, self._searches() | limit_of_hashing)
        _check_groups(runs)
        ratio = times(runs, OURS, JDUPES)
        self._verdicts.at_most(f"{corpus.name}, warm, times {JDUPES}", ratio, limit)

    def _rescan(self, corpus: Corpus) -> None:
        title(f"{corpus.title}: search again, nothing changed, warm cache")
        state = self._place / "rescanned"
        folders = [str(corpus.folder), str(self._trial.folder)]
        run([COMMAND, "up", *folders, "--once", "--json", "--state", str(state)])
        contenders: dict[str, Contender] = {
            JDUPES: partial(_peer, PEERS[JDUPES]),
            OURS: partial(_rescanning_service, state),
            FROM_NOTHING: partial(_from_nothing, state),
        }
        corpora.warm(corpus)
        runs = self._take_turns(corpus, contenders)
        shutil.rmtree(state)
        ratio = times(runs, OURS, JDUPES)
        self._verdicts.at_most(f"{corpus.name}, again, times {JDUPES}", ratio, 0.6)

    def _hash(self, corpus: Corpus, limit: float) -> None:
        title(f"{corpus.title}: hash of every file, warm cache")
        contenders: dict[str, Contender] = {
            "b3sum": partial(_b3sum, _all_files),
            OURS: partial(_hashing_service, self._place),
        }
        corpora.warm(corpus)
        runs = self._take_turns(corpus, contenders)
        rate = times(runs, "b3sum", OURS)
        self._verdicts.at_least(f"{corpus.name}, rate of hashing, times b3sum", rate, limit)

    def _searches(self) -> dict[str, Contender]:
        peers = {name: partial(_peer, command) for name, command in PEERS.items()}
        return {
            **peers,
            OURS: partial(_service, self._place),
            FROM_NOTHING: partial(_first_from_nothing, self._place),
        }

    def _take_turns(
        self,
        corpus: Corpus,
        contenders: Mapping[str, Contender],
        before: Callable[[], None] = lambda: None,
    ) -> Runs:
        """Run the contenders in turn, and print what they took."""
        runs: dict[str, list[Run]] = {name: [] for name in contenders}
        for _ in range(self._rounds):
            for name, contender in contenders.items():
                with contender() as tool:
                    before()
                    tool(self._trial.folder)
                    runs[name].append(tool(corpus.folder))
        print_runs(runs)
        return runs


@contextmanager
def _peer(command: Sequence[str]) -> Iterator[Tool]:
    yield lambda folder: run([*command, str(folder)])


@contextmanager
def _b3sum(choose: Callable[[Path], list[Path]]) -> Iterator[Tool]:
    def hash_files(folder: Path) -> Run:
        names = b"\0".join(map(os.fsencode, choose(folder)))
        return run(["xargs", "-0", "b3sum"], names)

    yield hash_files


def _all_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.bin"))


def _of_shared_sizes(folder: Path) -> list[Path]:
    sizes = {path: path.stat().st_size for path in _all_files(folder)}
    shared = Counter(sizes.values())
    return [path for path, size_bytes in sizes.items() if shared[size_bytes] > 1]


@contextmanager
def _service(place: Path) -> Iterator[Tool]:
    """Find the duplicates by planes that run already and know none of the files."""
    with _fresh(place) as state, _serving(state) as planes:
        yield partial(_up, state, planes)


@contextmanager
def _first_from_nothing(place: Path) -> Iterator[Tool]:
    """Find the duplicates from the start of both planes on an empty state to their end."""

    def search(folder: Path) -> Run:
        with _fresh(place) as state:
            return _up(state, (), folder)

    yield search


@contextmanager
def _from_nothing(state: Path) -> Iterator[Tool]:
    yield partial(_up, state, ())


def _up(state: Path, planes: Sequence[int], folder: Path) -> Run:
    command = [COMMAND, "up", str(folder), "--once", "--json", "--state", str(state)]
    return run(command, services=planes)


@contextmanager
def _rescanning_service(state: Path) -> Iterator[Tool]:
    with _serving(state) as planes:
        yield lambda folder: _ours(state, planes, "scan", folder.name)


@contextmanager
def _hashing_service(place: Path) -> Iterator[Tool]:
    """Hash all files, whether they may have a copy or not; the time is that of the job alone."""
    with _fresh(place) as state, _serving(state) as planes:

        def hash_files(folder: Path) -> Run:
            ours = partial(_ours, state, planes)
            ours("library", "add", folder.name, str(folder))
            ours("library", "set", folder.name, "--hash-policy", "all")
            ours("scan", folder.name)
            done = ours("hash", folder.name)
            job = json.loads(done.output)["job"]
            files = sum(1 for _ in folder.rglob("*.bin"))
            if job["completed_items"] != files:
                raise RuntimeError(f"{job['completed_items']} of {files} files were hashed.")
            began, ended = (datetime.fromisoformat(job[f"{end}_time"]) for end in ("create", "end"))
            return done._replace(seconds=(ended - began).total_seconds())

        yield hash_files


def _ours(state: Path, planes: Sequence[int], *arguments: str) -> Run:
    return run([COMMAND, *arguments, "--json", "--state", str(state)], services=planes)


@contextmanager
def _fresh(place: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="state-", dir=place) as state:
        yield Path(state)


@contextmanager
def _serving(state: Path) -> Iterator[list[int]]:
    """Have both planes run; yield their processes."""
    locations = Locations.from_environment({"MEDIAPLANE_STATE": str(state)})
    planes = [control_plane(locations), data_plane(locations)]
    with running(planes):
        yield [int(plane.life.read_text()) for plane in planes]


def _check_groups(runs: Runs) -> None:
    """Refuse to compare tools that do not find the same."""
    theirs = sum(1 for group in runs[JDUPES][0].output.split(b"\n\n") if group.strip())
    for name in (OURS, FROM_NOTHING):
        ours = json.loads(runs[name][0].output)["groups"]
        if ours != theirs:
            raise RuntimeError(f"{name}: mediaplane finds {ours} groups, jdupes {theirs}.")


def _drop_caches() -> None:
    os.sync()
    try:
        DROP_CACHES.write_text("3")
    except OSError as error:
        raise RuntimeError(f"The cache can only be emptied by root: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
