"""A scan looks at what the settings of its library tell it to look at."""

import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from data_plane.catalogue import scan_task
from data_plane.executor import ScanSettings, ScanTask
from data_plane.executors.scan import scan
from data_plane.jail import Jail
from mediaplane.protocol.tables import libraries
from tests.faults.mounts import small_disk
from tests.support.databases import Databases
from tests.support.reports import known_library, start_scan
from tests.support.scanning import MemoryReport, context, put

TREE = [b".git/config", b".hidden", b"a.jpg", b"b.txt", b"raw/a.jpg", b"raw/deep/b.txt", b"z/.x/y"]
DISK_BYTES = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    for name in TREE:
        put(folder, name, name)
    return folder


def scanned_with(root: Path, report: MemoryReport | None = None, **settings: Any) -> MemoryReport:
    report = report or MemoryReport()
    scan(ScanTask("pictures", bytes(root), report, ScanSettings(**settings)), context())
    return report


@pytest.mark.parametrize(
    ("settings", "paths"),
    [
        ({}, TREE),
        ({"include_globs": ["*.jpg"]}, [b"a.jpg", b"raw/a.jpg"]),
        ({"include_globs": ["raw/**"]}, [b"raw/a.jpg", b"raw/deep/b.txt"]),
        ({"exclude_globs": ["raw"]}, [name for name in TREE if not name.startswith(b"raw")]),
        ({"exclude_globs": ["raw/**"]}, [name for name in TREE if not name.startswith(b"raw")]),
        ({"exclude_globs": ["raw/"]}, [name for name in TREE if not name.startswith(b"raw")]),
        ({"include_globs": ["*.jpg"], "exclude_globs": ["raw"]}, [b"a.jpg"]),
        ({"skips_hidden": True}, [b"a.jpg", b"b.txt", b"raw/a.jpg", b"raw/deep/b.txt"]),
        ({"min_size_bytes": 9}, [b".git/config", b"raw/a.jpg", b"raw/deep/b.txt"]),
    ],
)
def test_only_what_the_settings_choose_is_seen(
    root: Path, settings: dict[str, Any], paths: list[bytes]
) -> None:
    report = scanned_with(root, **settings)
    assert report.changed_paths == paths
    assert not report.unseen
    assert report.counts
    assert report.counts.seen_files == len(paths)


@pytest.mark.parametrize(
    ("settings", "unopened"),
    [
        ({"exclude_globs": ["raw"]}, {b"raw", b"raw/deep"}),
        ({"exclude_globs": ["raw/**"]}, {b"raw", b"raw/deep"}),
        ({"skips_hidden": True}, {b".git", b"z/.x"}),
    ],
)
def test_a_folder_that_is_passed_over_is_not_opened(
    root: Path, settings: dict[str, Any], unopened: set[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    open_dir = Jail.open_dir

    def note(jail: Jail, rel: bytes | None = None) -> int:
        opened.append(rel)
        return open_dir(jail, rel)

    monkeypatch.setattr(Jail, "open_dir", note)
    scanned_with(root, **settings)
    folders = {b"", b".git", b"raw", b"raw/deep", b"z", b"z/.x"}
    assert set(opened) == folders - unopened


def test_a_known_file_that_is_passed_over_now_is_missing(root: Path) -> None:
    known = scanned_with(root).taken_over()
    report = scanned_with(root, known, exclude_globs=["raw"], min_size_bytes=6)
    assert report.missing_paths == [b"a.jpg", b"b.txt", b"raw/a.jpg", b"raw/deep/b.txt"]


def test_a_name_that_is_no_text_can_be_excluded(root: Path) -> None:
    put(root, b"\xff\xfe/x")
    assert b"\xff\xfe/x" in scanned_with(root).changed_paths
    assert scanned_with(root, exclude_globs=["??/**"]).changed_paths == TREE


@pytest.mark.parametrize(
    ("settings", "mounted"), [({}, []), ({"crosses_filesystems": True}, [b"other/mounted"])]
)
def test_another_file_system_is_entered_only_when_the_settings_say_so(
    root: Path, settings: dict[str, Any], mounted: list[bytes]
) -> None:
    with small_disk(root / "other", DISK_BYTES):
        put(root, b"other/mounted")
        report = scanned_with(root, **settings)
    assert report.changed_paths == sorted(TREE + mounted)
    assert not report.unseen


def test_a_mount_over_known_files_does_not_make_them_missing(root: Path) -> None:
    known = scanned_with(root).taken_over()
    with small_disk(root / "raw", DISK_BYTES):
        report = scanned_with(root, known)
        assert not os.listdir(root / "raw")
    assert report.unseen_codes == {b"raw": "other_filesystem"}
    assert (report.changed, report.missing) == ([], [])
    again = scanned_with(root, report.taken_over())
    assert (again.changed, again.missing, again.unseen) == ([], [], [])


def test_files_known_around_a_mount_point_are_told_missing_as_ever(root: Path) -> None:
    known = scanned_with(root).taken_over()
    (root / "a.jpg").unlink()
    (root / "z/.x/y").unlink()
    with small_disk(root / "m", DISK_BYTES):
        report = scanned_with(root, known)
    assert report.missing_paths == [b"a.jpg", b"z/.x/y"]
    assert not report.unseen


def test_the_settings_of_a_scan_are_those_of_its_library(database: Databases) -> None:
    known_library(database)
    chosen: dict[str, Any] = {
        "include_globs": ["*.jpg"],
        "exclude_globs": ["raw/**", "é"],
        "skips_hidden": True,
        "crosses_filesystems": True,
        "min_size_bytes": 1 << 40,
    }
    job = dict(start_scan(database).job)
    assert settings_of(database, job) == ScanSettings([], [])
    with database.control.write() as conn:
        conn.execute(update(libraries).values(**chosen))
    assert settings_of(database, job) == ScanSettings(**chosen)


def settings_of(database: Databases, job: dict[str, Any]) -> ScanSettings:
    job["lease_epoch"] += 1  # every run of a job has a session of its own
    return scan_task(database.data, job).settings
