"""The room on disks is told without waiting for one that is dead."""

import os
import threading
from pathlib import Path

import pytest

from data_plane import disks
from data_plane.disks import Disks
from data_plane.jail import Jail
from data_plane.roots import Root
from tests.support.waiting import PATIENCE_SECONDS, must_not_block


def test_the_room_of_the_state_and_of_each_library_is_told(tmp_path: Path) -> None:
    of_state, of_roots = Disks(tmp_path, Jail).look({"photos": Root(bytes(tmp_path), None, None)})
    there = os.statvfs(tmp_path)
    assert of_state is not None
    assert of_state.size_bytes == there.f_blocks * there.f_frsize
    assert 0 <= of_state.free_bytes <= of_state.size_bytes
    assert of_roots["photos"].size_bytes == of_state.size_bytes


def test_a_library_whose_disk_is_not_mounted_is_left_out(tmp_path: Path) -> None:
    inode = tmp_path.stat().st_ino
    roots = {
        "there": Root(bytes(tmp_path), None, inode),
        "another": Root(bytes(tmp_path), None, inode + 1),
        "gone": Root(bytes(tmp_path / "gone"), None, None),
    }
    _, of_roots = Disks(tmp_path, Jail).look(roots)
    assert of_roots.keys() == {"there"}


def test_a_dead_mount_holds_up_nothing_and_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "_PATIENCE_SECONDS", 0.2)
    asked, revived = threading.Semaphore(0), threading.Event()

    def open_jail(root: bytes) -> Jail:
        if root.endswith(b"dead"):
            asked.release()
            revived.wait(2 * PATIENCE_SECONDS)
        return Jail(bytes(tmp_path))

    found = Disks(tmp_path, open_jail)
    roots = {name: Root(bytes(tmp_path / name), None, None) for name in ("alive", "dead")}
    with must_not_block():
        for _ in range(3):
            assert "dead" not in found.look(roots)[1]
    assert asked.acquire(timeout=PATIENCE_SECONDS)
    assert not asked.acquire(blocking=False)
    revived.set()
