"""Whose report a scan's is: of the library's own root, of another disk, or of nobody's."""

from sqlalchemy import select

from mediaplane.protocol.tables import scan_entries
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import add_files
from tests.support.reports import (
    LIBRARY,
    PAIR,
    ROOT_INODE,
    Scan,
    files_of,
    groups_of,
    known_library,
    known_pair,
    library_of,
    seen,
    start_scan,
)

OTHER_DISK = 99


def test_files_of_the_librarys_own_root_are_taken_over_while_the_walk_goes_on(
    database: Databases,
) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.stage("seen", seen(b"new", 13))
    assert scan.absorbed() == 0, "before the root is known nothing may be believed"
    worker.began(database.data, scan.session_id)
    assert scan.absorbed() == 1
    assert files_of(database).keys() == {b"a", b"b", b"new"}


def test_another_disk_with_none_of_the_files_changes_nothing(database: Databases) -> None:
    known_pair(database)
    before = files_of(database)
    scan = foreign_scan(database)
    scan.stage("seen", seen(b"foreign", 2))
    scan.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    assert scan.absorbed() == 0, "until the walk has ended it may be either"
    scan.walked(root_device=OTHER_DISK, seen_files=1, new_files=1)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_changed")
    assert files_of(database) == before
    assert groups_of(database) == PAIR


def test_a_name_that_both_disks_have_does_not_make_another_one_the_library(
    database: Databases,
) -> None:
    known_pair(database)
    before = files_of(database)
    scan = foreign_scan(database)
    scan.stage("seen", seen(b"a", 11, mtime_ns=6))
    scan.stage("missing", {"rel_path": b"b"})
    scan.walked(root_device=OTHER_DISK, seen_files=1, changed_files=1, missing_files=1)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_changed")
    assert files_of(database) == before


def test_a_file_that_both_disks_have_does_not_make_another_one_the_library(
    database: Databases,
) -> None:
    known_pair(database)
    more = [seen(b"%02d" % number, number + 20) | {"device": 1} for number in range(20)]
    with database.control.write() as conn:
        add_files(conn, LIBRARY, more)
    scan = foreign_scan(database)
    scan.stage("seen", seen(b"a", 11), *[seen(b"x%02d" % number, number) for number in range(20)])
    scan.stage("missing", {"rel_path": b"b"}, *[{"rel_path": file["rel_path"]} for file in more])
    scan.walked(root_device=OTHER_DISK, seen_files=21, new_files=20, changed_files=1)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_changed")


def test_a_disk_whose_numbers_all_changed_is_recognised_by_sizes_and_times(
    database: Databases,
) -> None:
    known_pair(database)
    scan = foreign_scan(database)
    scan.stage("seen", seen(b"a", 91, device=7), seen(b"b", 92, device=7))
    scan.walked(root_device=OTHER_DISK, seen_files=2, changed_files=2)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)


def test_the_same_disk_mounted_anew_is_recognised_by_its_files(database: Databases) -> None:
    known_pair(database)
    scan = foreign_scan(database)
    scan.stage("seen", seen(b"new", 13))
    scan.walked(root_device=OTHER_DISK, seen_files=3, new_files=1)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)
    assert library_of(database)["root_device"] == OTHER_DISK
    assert files_of(database).keys() == {b"a", b"b", b"new"}


def test_files_that_were_all_renamed_in_place_are_believed(database: Databases) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.stage("seen", seen(b"x/a", 11), seen(b"x/b", 12))
    scan.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    scan.walked(seen_files=2, new_files=2, missing_files=2)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)
    assert files_of(database).keys() == {b"x/a", b"x/b"}


def test_the_root_is_remembered_from_the_first_file_on(database: Databases) -> None:
    known_library(database, root_device=None, root_inode=None)
    scan = start_scan(database)
    worker.began(database.data, scan.session_id)
    scan.stage("seen", seen(b"a", 11))
    scan.absorbed()
    assert library_of(database)["root_inode"] == ROOT_INODE
    worker.finish(database.data, scan.job, "fail")
    scan.absorbed()
    other = start_scan(database)
    other.stage("seen", seen(b"b", 12))
    other.walked(root_inode=ROOT_INODE + 1)
    other.absorbed()
    assert other.verdict == ("failed", "root_changed")
    assert files_of(database).keys() == {b"a"}


def test_what_a_lost_scan_stages_too_late_is_cleared_away(database: Databases) -> None:
    known_pair(database)
    lost = start_scan(database)
    worker.finish(database.data, lost.job, "fail")
    lost.absorbed()
    assert lost.verdict == ("failed", "scan_ended")
    lost.stage("seen", seen(b"ghost", 13))
    scan = start_scan(database)
    scan.walked(seen_files=2)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)
    assert files_of(database).keys() == {b"a", b"b"}
    with database.control.read() as conn:
        assert conn.execute(select(scan_entries.c.id)).all() == []


def test_a_hard_link_that_comes_back_does_not_become_a_duplicate(database: Databases) -> None:
    known_pair(database, is_missing=True)  # `a` is away, and `b` is …
    scan = start_scan(database)
    scan.stage("seen", seen(b"b", 11), seen(b"copy", 13))  # … now another name of its inode
    scan.walked(seen_files=2)
    scan.absorbed()
    worker.finish(database.data, scan.job, "complete")
    assert groups_of(database) == []
    again = start_scan(database)
    again.stage("seen", seen(b"a", 11))
    again.walked(seen_files=3)
    again.absorbed()
    carriers = [path for path, row in files_of(database).items() if row["content_hash"]]
    assert len(carriers) <= 1
    assert groups_of(database) == []


def foreign_scan(database: Databases) -> Scan:
    """A scan of a root whose file system is not the one that is remembered."""
    scan = start_scan(database)
    worker.began(database.data, scan.session_id, root_device=OTHER_DISK)
    return scan
