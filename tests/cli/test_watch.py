"""When a library that is watched is due for a scan."""

import os
import shutil
import time
from pathlib import Path

import pytest

from mediaplane.cli import watch
from mediaplane.cli.watch import Watched
from mediaplane.v1.library_service_pb2 import Library
from tests.support.waiting import eventually


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    return root


def begin(root: Path) -> Watched:
    library = Library(name="libraries/library", root_path=os.fsencode(root))
    return Watched(library, frozenset(), None)


def test_a_library_is_due_only_when_it_has_changed_and_is_quiet_again(root: Path) -> None:
    watched = begin(root)
    watched.look()
    assert not watched.is_due()
    (root / "file").touch()
    watched.look()
    assert not watched.is_due()
    eventually(watched.is_due)
    watched.forget_changes()
    assert not watched.is_due()


def test_a_library_that_is_never_quiet_is_due_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_QUIET_SECONDS", 3600.0)
    monkeypatch.setattr(watch, "_LONGEST_WAIT_SECONDS", 1.0)
    watched = begin(root)

    def is_due_after_a_change() -> bool:
        (root / "file").touch()
        watched.look()
        return watched.is_due()

    assert not is_due_after_a_change()
    eventually(is_due_after_a_change)


def test_a_root_that_is_made_anew_between_two_looks_is_watched(root: Path) -> None:
    watched = begin(root)
    shutil.rmtree(root)
    root.mkdir()
    watched.look()
    watched.look()  # where the new folder has the identity of the old, the second look sees it
    eventually(watched.is_due)
    watched.forget_changes()
    (root / "file").touch()
    watched.look()
    eventually(watched.is_due)


def test_what_no_scan_has_seen_is_due_again_after_a_while(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LONGEST_WAIT_SECONDS", 1.0)
    watched = begin(root)
    watched.failures = ["library: it is paused."]
    watched.rescanned_at = time.monotonic()
    assert not watched.is_due()
    eventually(watched.is_due)
    watched.failures = []
    assert not watched.is_due()


def test_a_root_that_is_gone_is_due_again_only_once_it_is_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LONGEST_WAIT_SECONDS", 0.0)
    watched = begin(root)
    watched.failures = ["library: its folder cannot be opened."]
    root.rename(root.with_name("away"))
    assert not watched.is_due()
    root.with_name("away").rename(root)
    assert watched.is_due()
