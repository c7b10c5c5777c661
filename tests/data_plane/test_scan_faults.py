"""What is not seen is not gone, and whatever stops a scan stops it soon."""

import os
import shutil
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from data_plane.executor import (
    Cancelled,
    Control,
    Fail,
    Found,
    Interrupted,
    LeaseLost,
    ScanTask,
    Seen,
    Unseen,
)
from data_plane.executors import comparison
from data_plane.executors.scan import scan
from tests.support.postgres import memory_directory
from tests.support.privileges import as_nobody, public_folder
from tests.support.scanning import MemoryReport, context, put, scanned, seen

CROWD = 50_000


@pytest.fixture
def root() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def crowded() -> Iterator[Path]:
    """One folder with very many files."""
    folder = Path(tempfile.mkdtemp(prefix="mediaplane-", dir=memory_directory()))
    for number in range(CROWD):
        os.close(os.open(folder / f"{number}.jpg", os.O_CREAT | os.O_WRONLY))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BATCH", 1)
    # So that what happens after a report happens before the walk goes on.
    monkeypatch.setattr(comparison, "BATCHES_AHEAD", 0)


class Meddler:
    """Does something to the tree once the scan has reported a number of times."""

    def __init__(self, after: int, deed: Callable[[], object]) -> None:
        self.left = after
        self.deed = deed
        self.is_done = False

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.deed()
            self.is_done = True


def scan_as_nobody(root: Path, known: MemoryReport) -> MemoryReport:
    def look() -> MemoryReport:
        report = scanned(root, known)
        del report.meddle  # a function cannot be sent from one process to another
        return report

    return as_nobody(look)


def failure(root: Path, report: MemoryReport) -> Fail:
    with pytest.raises(Fail) as failed:
        scanned(root, report)
    assert report.counts is None, "a report that is not whole must not be taken for one"
    return failed.value


def test_a_folder_that_may_not_be_opened_is_reported_and_its_files_stay_known(root: Path) -> None:
    for name in (b"open/1", b"shut/1", b"shut/deep/2", b"shut-1", b"shut0", b"z/1"):
        put(root, name)
    known = scanned(root).taken_over()
    (root / "shut").chmod(0)
    (root / "shut-1").unlink()
    (root / "shut0").unlink()
    report = scan_as_nobody(root, known)
    assert report.unseen_codes == {b"shut": "permission_denied"}
    assert report.unseen[0].is_folder
    assert report.missing_paths == [b"shut-1", b"shut0"]
    assert report.changed == []
    assert report.counts
    assert report.counts.errored_files == 1


def test_a_folder_that_may_be_listed_but_not_entered_is_reported_as_a_whole(root: Path) -> None:
    put(root, b"listed/1")
    put(root, b"listed/deep/2")
    known = scanned(root).taken_over()
    (root / "listed").chmod(0o744)
    report = scan_as_nobody(root, known)
    assert report.unseen_codes == {b"listed": "permission_denied"}
    assert (report.missing, report.changed) == ([], [])


def test_a_file_that_may_not_be_read_is_seen_all_the_same(root: Path) -> None:
    put(root, b"secret", b"1234")
    (root / "secret").chmod(0)
    report = scan_as_nobody(root, MemoryReport())
    assert report.changed == [seen(root, b"secret")]


@pytest.mark.usefixtures("small_batches")
def test_a_folder_that_goes_during_the_walk_is_gone_with_its_files(root: Path) -> None:
    for name in (b"a", b"b/1", b"b/deep/2", b"c"):
        put(root, name)
    report = scanned(root).taken_over()
    (root / "a").write_bytes(b"changed")
    report.meddle = meddler = Meddler(1, lambda: shutil.rmtree(root / "b"))
    scanned(root, report)
    assert meddler.is_done
    assert report.missing_paths == [b"b/1", b"b/deep/2"]
    assert (report.changed_paths, report.unseen) == ([b"a"], [])


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("replace", "code"),
    [
        (lambda path: path.write_bytes(b"now a file"), "changed"),
        (lambda path: path.symlink_to("elsewhere"), "refused_symlink"),
    ],
)
def test_a_folder_replaced_during_the_walk_is_reported_and_its_files_stay_known(
    root: Path, replace: Callable[[Path], object], code: str
) -> None:
    for name in (b"a", b"b/1", b"c", b"elsewhere/1"):
        put(root, name)
    report = scanned(root).taken_over()
    (root / "a").write_bytes(b"changed")

    def swap() -> None:
        (root / "b").rename(root / "moved")
        replace(root / "b")

    report.meddle = meddler = Meddler(1, swap)
    scanned(root, report)
    assert meddler.is_done
    assert report.unseen_codes == {b"b": code}
    assert report.missing == []


def test_a_missing_root_fails_the_scan_and_nothing_is_missing(root: Path) -> None:
    put(root, b"photos/1")
    report = scanned(root / "photos").taken_over()
    shutil.rmtree(root / "photos")
    assert failure(root / "photos", report).code == "root_unavailable"
    assert report.adds == 0


def test_a_root_that_is_no_folder_fails_the_scan(root: Path) -> None:
    put(root, b"photos")
    report = MemoryReport([Seen(b"known", 1, 1, 1, 1)])
    assert failure(root / "photos", report).code == "root_unavailable"
    assert report.adds == 0


def test_a_root_that_may_not_be_listed_fails_the_scan(root: Path) -> None:
    put(root, b"photos/1")
    report = scanned(root / "photos").taken_over()
    (root / "photos").chmod(0o711)
    assert as_nobody(lambda: failure(root / "photos", report).code) == "root_unavailable"


@pytest.mark.usefixtures("small_batches")
def test_a_root_removed_during_the_walk_fails_the_scan(root: Path) -> None:
    for name in (b"photos/a/1", b"photos/b/1", b"photos/c/1"):
        put(root, name)
    report = MemoryReport([Seen(b"b/known", 1, 1, 1, 1)])
    report.meddle = meddler = Meddler(1, lambda: shutil.rmtree(root / "photos"))
    assert failure(root / "photos", report).code == "root_unavailable"
    assert meddler.is_done


@pytest.mark.usefixtures("small_batches")
def test_a_root_replaced_during_the_walk_fails_the_scan(root: Path) -> None:
    for name in (b"photos/a/1", b"photos/b/1", b"other/x"):
        put(root, name)

    def swap() -> None:
        (root / "photos").rename(root / "away")
        (root / "other").rename(root / "photos")

    report = MemoryReport()
    report.meddle = meddler = Meddler(1, swap)
    assert failure(root / "photos", report).code == "root_changed"
    assert meddler.is_done


def test_a_folder_with_very_many_files_is_walked_whole(crowded: Path) -> None:
    report = scanned(crowded)
    assert len(report.changed) == CROWD
    assert report.changed_paths == sorted(os.listdir(bytes(crowded)))
    assert report.adds == CROWD // comparison.BATCH + 1


@pytest.mark.parametrize(
    ("signal", "raised"),
    [("cancelled", Cancelled), ("lost", LeaseLost), ("interrupted", Interrupted)],
)
@pytest.mark.parametrize("known", [0, CROWD])
def test_a_walk_ends_soon_after_it_is_told_to(
    crowded: Path, signal: str, raised: type[Exception], known: int
) -> None:
    control = Control()
    # Found is what the folder holds, or missing is what it never held.
    report = MemoryReport(Seen(b"! %d" % number, 1, 1, 1, 1) for number in range(known))
    report.meddle = meddler = Meddler(1, getattr(control, signal).set)
    with pytest.raises(raised):
        scan(ScanTask("pictures", bytes(crowded), report), context(control))
    assert meddler.is_done
    assert report.adds == 1


def test_a_walk_over_unchanged_files_ends_soon_after_it_is_told_to(crowded: Path) -> None:
    control = Control()

    class Telling(MemoryReport):
        def known(self) -> Iterator[Seen]:
            for number, file in enumerate(super().known()):
                if number == 100:
                    control.cancelled.set()
                yield file

    report = Telling(scanned(crowded).changed)
    with pytest.raises(Cancelled):
        scan(ScanTask("pictures", bytes(crowded), report), context(control))
    assert control.items < CROWD / 2


@pytest.mark.parametrize("signal", ["cancelled", "lost", "interrupted"])
def test_a_scan_does_not_wait_for_its_verdict_when_it_is_told_to_end(
    root: Path, signal: str
) -> None:
    control = Control()
    report = MemoryReport()
    report.verdicts = [False] * 1000
    report.meddle = getattr(control, signal).set
    with pytest.raises((Cancelled, LeaseLost, Interrupted)):
        scan(ScanTask("pictures", bytes(root), report), context(control))
    assert len(report.verdicts) >= 998


class SlowReport(MemoryReport):
    """Takes a batch only when the walk has come to another one, or to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.is_walked_on = threading.Event()
        self.batches_seen = 0

    def is_held_back(self) -> bool:
        self.batches_seen += 1
        if self.batches_seen > 1:
            self.is_walked_on.set()
        return False

    def add(
        self,
        new: Sequence[Found],
        changed: Sequence[Seen],
        missing: Sequence[Seen],
        unseen: Sequence[Unseen],
    ) -> None:
        assert self.is_walked_on.wait(60), "the walk waits for its report"
        super().add(new, changed, missing, unseen)


def test_the_walk_goes_on_while_a_report_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "BATCH", 1)
    names = [b"%02d" % number for number in range(20)]
    for name in names:
        put(root, name)
    report = scanned(root, SlowReport())
    assert [file.rel_path for file in report.changed] == names


def test_a_report_that_cannot_be_written_ends_the_walk(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "BATCH", 1)
    for number in range(20):
        put(root, b"%02d" % number)

    class Refused(MemoryReport):
        def add(
            self,
            new: Sequence[Found],
            changed: Sequence[Seen],
            missing: Sequence[Seen],
            unseen: Sequence[Unseen],
        ) -> None:
            self.adds += 1
            raise LeaseLost

    report = Refused()
    with pytest.raises(LeaseLost):
        scanned(root, report)
    assert report.adds <= 2 * comparison.BATCHES_AHEAD
    assert report.counts is None


def test_of_a_scan_that_is_called_off_nothing_more_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "BATCH", 1)
    for number in range(20):
        put(root, b"%02d" % number)
    control = Control()

    class Slow(MemoryReport):
        def add(
            self,
            new: Sequence[Found],
            changed: Sequence[Seen],
            missing: Sequence[Seen],
            unseen: Sequence[Unseen],
        ) -> None:
            control.cancelled.wait(60)  # until the walk is ahead by all that it may be
            super().add(new, changed, missing, unseen)

        def is_held_back(self) -> bool:
            self.waits += 1
            if self.waits > comparison.BATCHES_AHEAD:
                control.cancelled.set()
            return False

    report = Slow()
    with pytest.raises(Cancelled):
        scan(ScanTask("pictures", bytes(root), report), context(control))
    assert report.waits > comparison.BATCHES_AHEAD
    assert report.adds <= 1, "all but the one in hand"


class CountingReport(MemoryReport):
    """Knows very many files, and forgets what is reported."""

    def known(self) -> Iterator[Seen]:
        for number in range(200_000):
            yield Seen(b"folder/%08d.jpg" % number, number, number, 1, number)

    def add(
        self,
        new: Sequence[Found],
        changed: Sequence[Seen],
        missing: Sequence[Seen],
        unseen: Sequence[Unseen],
    ) -> None:
        self.adds += len(missing)


def test_memory_does_not_grow_with_what_is_known(root: Path) -> None:
    put(root, b"z")
    report = CountingReport()
    tracemalloc.start()
    try:
        scanned(root, report)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.adds == 200_000
    assert peak_bytes < 4 << 20
