"""A library over several disks: a disk that is away is no deletion, and no other disk's is its."""

import os
from pathlib import Path

import pytest

from data_plane.executor import ScanSettings, ScanTask
from data_plane.executors.scan import scan
from data_plane.file_states import signed64
from data_plane.jail import Jail
from tests.faults.mounts import small_disk
from tests.support.scanning import MemoryReport, context, put

DISK_BYTES = 1 << 20
ACROSS = ScanSettings(crosses_filesystems=True)
OTHER = 77


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (b"disk/.mount point", b"own/a", b"own/b"):
        put(tmp_path / "root", name)
    return tmp_path / "root"


def device_of(root: Path) -> int:
    with Jail(bytes(root)) as jail:
        return signed64(jail.filesystem_id())


def scanned(
    root: Path, known: MemoryReport | None = None, device: int | None = None
) -> MemoryReport:
    report = known.taken_over() if known else MemoryReport()
    scan(ScanTask("pictures", bytes(root), report, ACROSS, device), context())
    return report


def with_disk(root: Path, *names: bytes, known: MemoryReport | None = None) -> MemoryReport:
    with small_disk(root / "disk", DISK_BYTES):
        for name in names:
            put(root, name)
        return scanned(root, known, device_of(root))


def test_files_of_a_disk_that_is_away_are_not_missing(root: Path) -> None:
    known = with_disk(root, b"disk/x", b"disk/deep/y")
    (root / "own/b").unlink()
    report = scanned(root, known, device_of(root))
    assert report.missing_paths == [b"own/b"]
    # Once for all that was on it.
    assert report.unseen_codes == {b"disk/deep": "disk_away"}
    assert report.counts
    assert (report.counts.missing_files, report.counts.errored_files) == (1, 1)


def test_files_that_went_from_a_disk_that_is_there_are_missing(root: Path) -> None:
    known = with_disk(root, b"disk/x", b"disk/y")
    # Its number is another one by now, as of file systems that have none of their own.
    report = with_disk(root, b"disk/y", known=known)
    assert report.missing_paths == [b"disk/x"]
    assert not report.unseen


@pytest.mark.parametrize("device", [None, OTHER])
def test_where_the_library_itself_lies_elsewhere_what_is_gone_is_missing(
    root: Path, device: int | None
) -> None:
    known = with_disk(root, b"disk/x")
    report = scanned(root, known, device)
    assert report.missing_paths == [b"disk/x"]
    assert not report.unseen


def test_files_that_an_older_version_knew_by_the_number_of_their_device_are_missing(
    root: Path,
) -> None:
    known = scanned(root)
    number = root.stat().st_dev
    known.new = [(*file[:3], number, file[4]) for file in known.new]
    (root / "own/b").unlink()
    report = scanned(root, known, device_of(root))
    assert report.missing_paths == [b"own/b"]
    assert not report.unseen


def test_disks_that_come_one_after_the_other_are_told_apart(tmp_path: Path) -> None:
    known = []
    for _ in range(2):
        with small_disk(tmp_path, DISK_BYTES):
            put(tmp_path, b"x", b"of either disk")
            known += scanned(tmp_path).changed
            # The number of the device goes to the next disk, this one does not.
            assert known[-1].device == os.statvfs(tmp_path).f_fsid % (1 << 63)
    assert known[0].inode == known[1].inode
    assert known[0].device != known[1].device
