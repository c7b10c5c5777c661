"""Compares what a walk sees with what is known, both in the byte order of whole paths."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from operator import itemgetter
from typing import Any

from data_plane.executor import Context, Control, Found, ScanCounts, ScanReport, Seen, Unseen
from data_plane.file_states import signed64, storable_time

BATCH = 10_000
_HELD_BACK_SECONDS = 0.5
# What the walk may be ahead of the database, which has one writer at a time.
BATCHES_AHEAD = 4
# The code of a mount point that the walk did not enter.
OTHER_FILESYSTEM = "other_filesystem"
_AWAY = (
    "disk_away",
    (
        "Files below were on a disk of their own, which is not mounted now; what is known of them"
        " stays as it is. If they are gone for good, scan the library with --accept-new-root."
    ),
)
_SIZE = itemgetter(Seen._fields.index("size_bytes"))


class _Differences:
    """Counts what a scan finds and reports it in batches, by a thread: the walk need not wait."""

    def __init__(
        self,
        report: ScanReport,
        counts: ScanCounts,
        is_away: Callable[[Seen], bool],
        control: Control,
        writer: Executor,
    ) -> None:
        self._report = report
        self._writer = writer
        self._written: deque[Future[None]] = deque()
        self._control = control
        self._counts = counts
        self._is_away = is_away
        self._disks_away: set[int] = set()
        self._new: list[Found] = []
        self._changed: list[Seen] = []
        self._missing: list[Seen] = []
        self._unseen: list[Unseen] = []

    def seen(self, file: Seen, known: Seen | None) -> None:
        """Take down a file that is there; `known` is what it was like at the last scan."""
        self._counts.seen_files += 1
        self._counts.seen_bytes += file.size_bytes
        if self._counts.seen_files % BATCH == 0:
            self._control.check()  # now and then: it would cost a tenth of the scan each time
        if file == known:
            return
        if known is None:
            self._counts.new_files += 1
            self._take(self._new, file)
        else:
            self._counts.changed_files += 1
            self._take(self._changed, file)

    def same(self, files: Sequence[Found]) -> None:
        """Take down files that are there, all as they were."""
        self._counts.seen_files += len(files)
        self._counts.seen_bytes += sum(map(_SIZE, files))
        self._control.check()

    def new(self, files: Sequence[Found]) -> None:
        """Take down files that are there and were not."""
        self.same(files)
        self._counts.new_files += len(files)
        at = 0
        while at < len(files):
            end = at + BATCH - len(self._new)
            self._new += files[at:end]
            at = end
            if len(self._new) >= BATCH:
                self.flush()

    def missing(self, file: Seen) -> None:
        """Take down a file that is gone; one that went with its disk is not."""
        if not self._is_away(file):
            self._counts.missing_files += 1
            self._take(self._missing, file)
        elif file.device not in self._disks_away:
            self._disks_away.add(file.device)
            self.unseen(Unseen(file.rel_path.rpartition(b"/")[0], True, *_AWAY))

    def unseen(self, name: Unseen) -> None:
        """Take down a name that could not be looked at."""
        self._counts.errored_files += 1
        self._take(self._unseen, name)

    def flush(self) -> None:
        """Have everything reported that was taken down so far, unless the scan is to end."""
        while self._report.is_held_back():
            self._control.wait(_HELD_BACK_SECONDS)
        self._control.check()
        taken = (_as_all_stored(self._new), self._changed, self._missing, self._unseen)
        self._written.append(self._writer.submit(self._report.add, *taken))
        self._new, self._changed, self._missing, self._unseen = [], [], [], []
        self.settle(BATCHES_AHEAD)

    def _take(self, taken: list[Any], one: Seen | Unseen) -> None:
        taken.append(one)
        if len(taken) >= BATCH:
            self.flush()

    def settle(self, most: int = 0) -> None:
        """Wait until no more than so many batches are still to be written."""
        while len(self._written) > most:
            self._written.popleft().result()


class _Known:
    """The files of the last scan, by path, as far as the walk has not come past them."""

    def __init__(self, files: Iterator[tuple[Any, ...]]) -> None:
        self._files = files
        self._page: list[tuple[Any, ...]] = []
        self._at = 0

    @property
    def next(self) -> Seen | None:
        """The first of them."""
        if self._at == len(self._page):
            self._read(1)
        return Seen._make(self._page[self._at]) if self._at < len(self._page) else None

    def pass_by(self) -> None:
        """Come past the first of them."""
        self._at += 1

    def pass_by_same(self, run: list[Found]) -> bool:
        """Come past files that are the next ones and as they were, all at once; or past none."""
        end = self._at + len(run)
        if end > len(self._page):
            self._read(len(run))
            end = len(run)
        if self._page[self._at : end] != run:
            return False
        self._at = end
        return True

    def _read(self, least: int) -> None:
        self._page = self._page[self._at :]
        self._page += islice(self._files, max(BATCH, least - len(self._page)))
        self._at = 0


def compare(
    walked: Iterator[list[Found] | Unseen],
    report: ScanReport,
    counts: ScanCounts,
    is_away: Callable[[Seen], bool],
    ctx: Context,
) -> None:
    """Report what the walk shows and the database does not know, and the other way round."""
    known = _Known(report.known())
    writer = ThreadPoolExecutor(1, "scan-report")
    try:
        differences = _Differences(report, counts, is_away, ctx.control, writer)
        for found in walked:
            if isinstance(found, Unseen):
                _compare_unseen(found, known, differences)
            elif known.pass_by_same(found):
                differences.same(found)
            else:
                _compare_run(found, known, differences)
            ctx.control.items = counts.seen_files
        _report_missing(known, None, differences)
        differences.flush()
        differences.settle()
    finally:
        # Of a scan that ends early nothing is written but what is being written.
        writer.shutdown(cancel_futures=True)


def _as_stored(file: Found) -> Seen:
    _path, _size, mtime_ns, device, inode = file
    # Hardly ever, and for every file these calls would take longer than all the rest.
    if (abs(mtime_ns) | device | inode) >> 63:
        return Seen(*file[:2], storable_time(mtime_ns), signed64(device), signed64(inode))
    return Seen._make(file)


def _as_all_stored(files: list[Found]) -> list[Found]:
    """Do the same for many, of which hardly ever one has to be changed."""
    _paths, _sizes, *numbers = zip(*files, strict=True) if files else ((), ())
    if any((abs(min(column)) | max(column)) >> 63 for column in numbers):
        return list(map(_as_stored, files))
    return files


def _compare_run(run: list[Found], known: _Known, differences: _Differences) -> None:
    if (first := known.next) is None or first.rel_path > run[-1][0]:
        differences.new(run)
        return
    for file in map(_as_stored, run):
        _report_missing(known, file.rel_path, differences)
        expected = known.next
        if expected is not None and expected.rel_path == file.rel_path:
            differences.seen(file, expected)
            known.pass_by()
        else:
            differences.seen(file, None)


def _compare_unseen(found: Unseen, known: _Known, differences: _Differences) -> None:
    _report_missing(known, _place(found), differences)
    # A mount point is worth a word only where it hides files that are known.
    if found.code != OTHER_FILESYSTEM or _hides(found, known.next):
        differences.unseen(found)
    # Not seen is not gone: what is known there stays as it is.
    while _hides(found, known.next):
        known.pass_by()


def _report_missing(known: _Known, place: bytes | None, differences: _Differences) -> None:
    """Report the known files before a place of the walk, which has come past them."""
    while (expected := known.next) is not None and (place is None or expected.rel_path < place):
        differences.missing(expected)
        known.pass_by()


def _place(name: Unseen) -> bytes:
    """Return where in the order of the walk a name stands: a folder where its files would."""
    return name.rel_path + b"/" if name.is_folder else name.rel_path


def _hides(unseen: Unseen, file: Seen | None) -> bool:
    if file is None:
        return False
    place = _place(unseen)
    return file.rel_path.startswith(place) if unseen.is_folder else file.rel_path == place
