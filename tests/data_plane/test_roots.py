"""A folder that stands where a library was is not taken for the library."""

import os
from pathlib import Path

import pytest

from data_plane.file_states import signed64
from data_plane.jail import Jail
from data_plane.roots import AnotherRoot, Root, open_root, recognising
from tests.faults.mounts import small_disk


def identity(folder: Path) -> Root:
    with Jail(bytes(folder)) as jail:
        numbers = (jail.filesystem_id(), jail.identity[1])
    return Root(bytes(folder), *map(signed64, numbers))


def test_a_root_that_is_what_it_was_is_opened(tmp_path: Path) -> None:
    for root in (identity(tmp_path), Root(bytes(tmp_path), None, None)):
        with open_root(root, Jail) as jail:
            assert jail.real_path() == bytes(tmp_path)


def test_another_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    known = identity(library)
    library.rename(tmp_path / "away")
    library.mkdir()
    with pytest.raises(AnotherRoot):
        open_root(known, Jail)
    with pytest.raises(AnotherRoot):
        recognising([known], Jail)(known.path)


def test_another_disk_in_its_place_is_refused_although_its_root_has_the_same_number(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path, 1 << 20):
        known = identity(tmp_path)
    with small_disk(tmp_path, 1 << 20):
        assert identity(tmp_path).inode == known.inode
        assert os.statvfs(tmp_path).f_fsid
        with pytest.raises(AnotherRoot):
            open_root(known, Jail)
