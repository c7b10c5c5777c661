"""A library is hidden at once; its duplicate groups are counted anew behind that, bite by bite."""

from typing import Any

import pytest
from sqlalchemy import select, text

from control_plane.policy import discovery, duplicates, regrouping, trash
from control_plane.store import groups
from control_plane.store import trash as trash_rows
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import libraries, library_files
from mediaplane.protocol.values import Plane
from mediaplane.v1 import duplicate_service_pb2 as pb
from tests.support.bites import before
from tests.support.control import ControlPlane
from tests.support.files import add_files, content, digest, summarise_all
from tests.support.hashing import plan_hash
from tests.support.rows import Rows

pytestmark = pytest.mark.usefixtures("bites_of_one_row")

LINKS = {"device": 5, "inode": 77}


def fill(control: ControlPlane, **rows: list[dict[str, Any]]) -> None:
    for slug in rows:
        control.library(slug)
    with control.database.control.write() as conn:
        for slug, files in rows.items():
            add_files(conn, slug, files)
        summarise_all(conn)


def hide(control: ControlPlane, slug: str) -> None:
    """Remove a library as a control plane does that dies before it has counted anything."""
    with control.database.control.write() as conn:
        trash.delete(conn, None, slug)


def bite(control: ControlPlane, slug: str) -> bool:
    with control.database.control.write() as conn:
        return regrouping.regroup(conn, slug, 1)


def key(number: int) -> str:
    return f"blake3:{digest(number).hex()}"


def shown(control: ControlPlane, **options: Any) -> dict[str, tuple[int, int]]:
    return {
        group.group_key: (group.file_count, group.reclaimable_bytes)
        for group in control.client.duplicate_groups(**options)
    }


def wrong_groups(control: ControlPlane) -> int:
    """Compare the summary with the files as they are, without having anything counted first."""
    with control.database.control.read() as conn:
        span = groups.span(conn, ("", b""), 10_000)
        return len(groups.wrong(conn, None, span))


def test_the_groups_that_are_shown_are_right_at_every_bite(control: ControlPlane) -> None:
    fill(
        control,
        photos=[content(1), content(1), content(2), content(4), content(4)],
        films=[content(1), content(1), content(2), content(5), content(5)],
    )
    left = {key(1): (2, 10), key(5): (2, 10)}
    hide(control, "photos")
    bites = 0
    while True:
        assert shown(control) == left
        statistics = control.client.statistics()
        assert (statistics.groups, statistics.reclaimable_bytes) == (2, 20)
        if not bite(control, "photos"):
            break
        bites += 1
    assert bites == 4
    assert wrong_groups(control) == 0


@pytest.mark.parametrize("order", list(pb.ListDuplicateGroupsRequest.Order.values())[1:])
def test_pages_go_on_where_they_were_while_groups_vanish_from_them(
    control: ControlPlane, order: Any
) -> None:
    both = [content(n) for n in range(6)]
    fill(control, photos=both * 2 + [content(n) for n in (10, 10, 11, 11)], films=both * 2)
    hide(control, "photos")
    found: list[str] = []
    token = ""
    while True:
        request = pb.ListDuplicateGroupsRequest(page_size=2, page_token=token, order=order)
        answer = control.duplicates.ListDuplicateGroups(request)
        assert {group.file_count for group in answer.groups} <= {2}
        found += [group.group_key for group in answer.groups]
        token = answer.next_page_token
        if not token:
            break
    assert sorted(found) == sorted(key(n) for n in range(6))


def test_what_was_left_undone_is_counted_by_the_next_look(control: ControlPlane) -> None:
    fill(control, photos=[content(n // 2) for n in range(10)])
    hide(control, "photos")
    assert bite(control, "photos")
    assert bite(control, "photos")
    assert wrong_groups(control) > 0
    regrouping.settle_all(control.database.control)
    assert wrong_groups(control) == 0
    with control.database.control.read() as conn:
        assert conn.scalar(select(libraries.c.regroup_from)) is None


def test_who_removes_a_large_library_waits_for_no_more_than_a_while(
    control: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regrouping, "CALL_SECONDS", 0)
    fill(control, photos=[content(1)] * 2, films=[content(2)] * 2)
    as_it_was = shown(control)
    assert control.client.remove_library("photos").HasField("delete_time")
    assert wrong_groups(control) == 1
    assert shown(control) == {key(2): (2, 10)}
    regrouping.settle_all(control.database.control, lambda: False)  # as when told to stop
    assert wrong_groups(control) == 1
    regrouping.settle_all(control.database.control)
    assert wrong_groups(control) == 0
    control.client.restore_library("photos")
    regrouping.settle_all(control.database.control)
    assert shown(control) == as_it_was


def test_a_comparison_of_the_groups_counts_first_what_is_left_to_count(
    control: ControlPlane,
) -> None:
    fill(control, photos=[content(1), content(1)])
    hide(control, "photos")
    found = duplicates.verify(control.database.control, None, repair=False)
    assert found == duplicates.Findings(groups=0, wrong_groups=0)


def test_a_purge_forgets_no_hash_before_its_group_is_counted(control: ControlPlane) -> None:
    fill(control, photos=[content(n // 2) for n in range(6)], films=[content(0)])
    hide(control, "photos")
    while True:
        with control.database.control.write() as conn:
            if trash.purge(conn, None, "photos").is_gone:
                break
    assert wrong_groups(control) == 0


def test_a_library_that_is_hidden_and_shown_before_anything_was_counted_is_as_it_was(
    control: ControlPlane,
) -> None:
    fill(control, photos=[content(1), content(1), content(2)], films=[content(2), content(3)])
    as_it_was = shown(control)
    hide(control, "photos")
    bite(control, "photos")
    trash.restore(control.database.control, None, "photos")
    regrouping.settle_all(control.database.control)
    assert shown(control) == as_it_was
    assert wrong_groups(control) == 0


def test_the_report_of_a_scan_waits_until_the_groups_are_counted(control: ControlPlane) -> None:
    fill(control, photos=[content(1), content(1)])
    hide(control, "photos")
    trash.restore(control.database.control, None, "photos")
    with control.database.control.write() as conn:
        rows = Rows(conn)
        job = rows.add("jobs", kind="scan", status="running", library_id="photos", lease_epoch=1)
        session = rows.add("scan_sessions", library_id="photos", job_id=job, lease_epoch=1,
                           root_device=1, root_inode=2)  # fmt: skip
        rows.add("scan_entries", session_id=session, rel_path=b"new", size_bytes=1, mtime_ns=1)
    assert not discovery.absorb(control.database.control)
    regrouping.settle_all(control.database.control)
    assert discovery.absorb(control.database.control)


def test_a_name_that_is_marked_while_a_library_comes_back_is_the_only_one_with_a_hash(
    control: ControlPlane,
) -> None:
    fill(control, photos=[LINKS | content(1), content(2)], films=[LINKS, {}])
    control.client.remove_library("photos")
    other = Database(control.database.url, Plane.CONTROL)
    looked = []

    def plan() -> None:
        looked.append(plan_hash(other)["total_items"])

    # The first look is at its files, and the second finds that there are no more.
    before(control.database.control, "LIMIT 1) IS NOT NULL AS is_second", plan, number=2)
    control.client.restore_library("photos")
    other.close()
    assert looked == [2]
    with control.database.control.read() as conn:
        names = select(library_files.c.needs_hash, library_files.c.content_hash).where(
            library_files.c.inode == LINKS["inode"]
        )
        carried = [row for row in conn.execute(names) if row.needs_hash or row.content_hash]
    assert len(carried) == 1
    assert wrong_groups(control) == 0


def test_the_files_of_a_hidden_library_wait_no_longer_for_a_hash(control: ControlPlane) -> None:
    fill(control, photos=[{"needs_hash": True} | content(1), content(1), content(1)])
    hide(control, "photos")
    regrouping.settle_all(control.database.control)
    with control.database.control.read() as conn:
        marked = "SELECT count(*) FROM library_files WHERE needs_hash"
        assert conn.execute(text(marked)).scalar() == 0
        files = trash_rows.files_from(conn, "photos", b"", 10)
    assert [file.is_hashed for file in files] == [False, True, True]
