"""What counts as a change of a folder, on real folders."""

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mediaplane.cli.inotify import FolderWatch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "folder" / "file").write_bytes(b"content")
    (root / "own").mkdir()
    return root


@contextmanager
def watched(root: Path) -> Iterator[FolderWatch]:
    """Watch all of a library but its folder 'own'."""
    own = (root / "own").stat()
    watch = FolderWatch(
        os.fsencode(root),
        ignored=frozenset({(own.st_dev, own.st_ino)}),
        crosses_filesystems=False,
    )
    try:
        yield watch
    finally:
        watch.close()


def exchange(one: Path, other: Path) -> None:
    """Have two folders change their names at one stroke, for which Python has no function."""
    names = [ctypes.c_char_p(bytes(path)) for path in (one, other)]
    here, exchanging = -100, 2
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.renameat2(here, names[0], here, names[1], ctypes.c_uint(exchanging))
    assert not failed, os.strerror(ctypes.get_errno())


def test_nothing_has_changed_at_first_and_reading_changes_nothing(root: Path) -> None:
    with watched(root) as watch:
        assert not watch.has_changed()
        (root / "folder" / "file").read_bytes()
        list((root / "folder").iterdir())
        assert not watch.has_changed()


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "folder" / "inner" / "new").touch(),
        lambda root: (root / "folder" / "file").write_bytes(b"other"),
        lambda root: (root / "folder" / "file").chmod(0o600),
        lambda root: os.utime(root / "folder" / "file", (1, 1)),
        lambda root: (root / "folder" / "file").rename(root / "folder" / "renamed"),
        lambda root: (root / "folder" / "file").unlink(),
        lambda root: shutil.rmtree(root / "folder"),
        shutil.rmtree,
        lambda root: root.rename(root.parent / "elsewhere"),
    ],
    ids=["new", "written", "mode", "time", "renamed", "deleted", "folder", "root", "moved root"],
)  # fmt: skip
def test_a_change_is_told_once(root: Path, change: object) -> None:
    with watched(root) as watch:
        assert callable(change)
        change(root)
        assert watch.has_changed()
        assert not watch.has_changed()


def test_a_watch_ends_with_its_root_and_not_with_a_folder_below(root: Path) -> None:
    with watched(root) as watch:
        shutil.rmtree(root / "folder")
        assert watch.has_changed()
        assert watch.is_alive
        shutil.rmtree(root)
        assert watch.has_changed()
        assert not watch.is_alive


def test_folders_that_are_new_are_watched_with_all_below_them(root: Path) -> None:
    with watched(root) as watch:
        (root / "new" / "inner").mkdir(parents=True)
        assert watch.has_changed()
        (root / "new" / "inner" / "file").touch()
        assert watch.has_changed()


def test_a_folder_that_is_moved_is_watched_where_it_is_now(root: Path) -> None:
    with watched(root) as watch:
        (root / "folder").rename(root / "moved")
        assert watch.has_changed()
        (root / "moved" / "inner" / "new").mkdir()
        assert watch.has_changed()
        (root / "moved" / "inner" / "new" / "file").touch()
        assert watch.has_changed()


def test_folders_that_change_places_are_watched_where_they_are_now(root: Path) -> None:
    (root / "other" / "inner").mkdir(parents=True)
    with watched(root) as watch:
        exchange(root / "folder", root / "other")
        assert watch.has_changed()
        for folder in ("folder", "folder/inner", "other", "other/inner"):
            (root / folder / "new").touch()
            assert watch.has_changed(), folder
            assert not watch.has_changed()


def test_a_folder_that_is_moved_out_is_watched_no_more(root: Path) -> None:
    with watched(root) as watch:
        (root / "folder").rename(root.parent / "outside")
        assert watch.has_changed()
        (root.parent / "outside" / "inner" / "new").touch()
        assert not watch.has_changed()


def test_what_happens_in_an_ignored_folder_or_behind_a_link_is_no_change(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    with watched(root) as watch:
        (root / "own" / "database").write_bytes(b"changed all the time")
        (outside / "file").touch()
        assert not watch.has_changed()


def test_a_root_that_is_a_link_is_watched_where_it_leads(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with watched(link) as watch:
        (root / "folder" / "new").touch()
        assert watch.has_changed()


def test_folders_whose_creation_was_lost_in_a_flood_are_watched_all_the_same(root: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with watched(root) as watch:
        other = root / "other"
        other.touch()
        for number in range(limit // 2 + 1):  # two events in turn, as equal ones become one
            os.utime(other, (number, number))
            os.utime(root / "folder" / "file", (number, number))
        (root / "unheard").mkdir()
        assert watch.has_changed()
        assert not watch.has_changed()
        (root / "unheard" / "file").touch()
        assert watch.has_changed()


def test_a_folder_that_may_not_be_read_does_not_hide_the_others(root: Path) -> None:
    (root / "folder" / "inner").chmod(0)
    with watched(root) as watch:
        (root / "folder" / "new").touch()
        assert watch.has_changed()
