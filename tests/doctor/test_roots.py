"""The doctor looks at the folders of the libraries as a data plane sees them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from data_plane.file_states import signed64
from data_plane.jail import Jail
from data_plane.roots import Roots
from data_plane.status import probe_root
from mediaplane.doctor import roots
from mediaplane.doctor.finding import Finding, Level
from mediaplane.protocol.tables import library_files
from tests.doctor.reading import levels, only
from tests.faults.mounts import small_disk
from tests.support.databases import Databases
from tests.support.files import add_library
from tests.support.planes import LIBRARY, Desk
from tests.support.planes import desk as desk


@pytest.fixture
def root(desk: Desk, tmp_path: Path) -> Path:
    """A library that was scanned: its folder is known, and a file in it."""
    root = tmp_path / "library"
    root.mkdir()
    (root / "picture.jpg").touch()
    desk.add_library(root)
    with Jail(bytes(root)) as jail:
        seen = {"device": signed64(jail.filesystem_id()), "inode": signed64(jail.identity[1])}
    desk.change("UPDATE libraries SET root_device = :device, root_inode = :inode", **seen)
    with desk.database.write() as conn:
        file = {"rel_path": b"picture.jpg", "size_bytes": 0, "mtime_ns": 0}
        conn.execute(insert(library_files).values(library_id=LIBRARY, **file))
    return root


def look(database: Databases, allowed: str = "") -> Sequence[Finding]:
    with database.control.read() as conn:
        rows = roots.known(conn)
    seen = [probe_root(Roots(allowed), bytes(row.absolute_path)) for row in rows]
    return list(roots.look(rows, seen))


def test_a_folder_that_is_as_it_was_is_well(database: Databases, root: Path) -> None:
    assert levels(look(database), "libraries") == ["ok"]


def test_no_library_at_all_is_well(database: Databases) -> None:
    assert levels(look(database), "libraries") == ["ok"]


def test_libraries_whose_hashes_cannot_be_compared_are_worth_a_warning(
    database: Databases, root: Path
) -> None:
    with database.control.write() as conn:
        add_library(conn, "films", absolute_path=bytes(root))
        add_library(conn, "theirs", absolute_path=bytes(root), tenant_id="other")
        conn.execute(text("UPDATE libraries SET hash_algorithm = 'sha256' WHERE slug = 'theirs'"))
    assert levels(look(database), "libraries") == ["ok"] * 3
    with database.control.write() as conn:
        conn.execute(text("UPDATE libraries SET hash_algorithm = 'sha256' WHERE slug = 'films'"))
    warned = only(look(database), "libraries", Level.WARNING).message
    assert f"{LIBRARY} by blake3; films by sha256" in warned


def test_a_folder_that_is_gone_is_a_problem(database: Databases, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    assert str(root) in only(look(database), "libraries", Level.PROBLEM).message


def test_another_folder_in_its_place_is_a_problem(database: Databases, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    (root / "picture.jpg").touch()
    advice = only(look(database), "libraries", Level.PROBLEM).advice
    assert f"mediaplane scan {LIBRARY} --accept-new-root" in advice


def test_an_empty_folder_of_a_library_with_files_is_a_problem(
    database: Databases, root: Path
) -> None:
    (root / "picture.jpg").unlink()
    assert "mounted" in only(look(database), "libraries", Level.PROBLEM).message


def test_an_empty_folder_of_an_empty_library_is_warned_of(
    desk: Desk, database: Databases, root: Path
) -> None:
    (root / "picture.jpg").unlink()
    desk.change("DELETE FROM library_files")
    assert levels(look(database), "libraries") == ["warning"]


def test_the_same_place_on_another_disk_is_noticed(
    desk: Desk, database: Databases, root: Path
) -> None:
    with small_disk(root, 1 << 20):
        (root / "picture.jpg").touch()
        # Roots of file systems often have the same inode.
        desk.change("UPDATE libraries SET root_inode = :inode", inode=root.stat().st_ino)
        assert levels(look(database), "libraries") == ["warning"]


def test_a_folder_outside_of_the_allowed_ones_is_a_problem(
    database: Databases, root: Path, tmp_path: Path
) -> None:
    found = only(look(database, allowed=str(tmp_path / "other")), "libraries", Level.PROBLEM)
    assert "MEDIAPLANE_ROOTS" in found.message


def test_a_library_in_the_trash_is_not_looked_at(
    desk: Desk, database: Databases, root: Path
) -> None:
    root.rename(root.with_name("elsewhere"))
    with desk.database.write() as conn:
        conn.execute(text("UPDATE libraries SET deleted_at = 1"))
    assert levels(look(database), "libraries") == ["ok"]
