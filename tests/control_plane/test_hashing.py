"""Which files a hash job is given: possible duplicates, each file once however many names."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, select, update

from control_plane.policy import admission, shards
from control_plane.store import hashing
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import job_items, libraries, library_files
from tests.support.databases import Databases
from tests.support.files import (
    add_files,
    add_library,
    content,
    expected_groups,
    summarise_all,
    summarised_groups,
)
from tests.support.hashing import plan_hash

LINKS = {"device": 5, "inode": 77}
CONTROL = "control"


@pytest.fixture
def conn(database: Databases) -> Iterator[Connection]:
    """A connection that commits every statement, and four libraries, of which two can be hashed."""
    with database.control.survey() as conn:
        conn.info[CONTROL] = database.control
        if conn.dialect.name == "postgresql":
            conn.exec_driver_sql("COMMIT")
        add_library(conn, "photos")
        add_library(conn, "films", hash_policy="all")
        add_library(conn, "paused", is_active=False)
        add_library(conn, "trash", deleted_at=1)
        yield conn


class Planned(NamedTuple):
    """What a hash job was given."""

    marked: list[int]
    shards: list[tuple[str, dict[str, Any], int, int]]
    total_items: int
    total_bytes: int


def plan(conn: Connection, library: str | None = None) -> Planned:
    """Plan a hash job, and cancel it to make room for the next."""
    control: Database = conn.info[CONTROL]
    job = plan_hash(control, library)
    with control.write() as other:
        admission.cancel(other, None, job["id"])
    items = conn.execute(select(job_items).where(job_items.c.job_id == job["id"])).mappings()
    marked = select(library_files.c.id).where(library_files.c.needs_hash)
    return Planned(
        list(conn.scalars(marked.order_by(library_files.c.id))),
        [(row["item_key"], row["payload"], row["total_items"], row["total_bytes"])
         for row in items],
        job["total_items"],
        job["total_bytes"],
    )  # fmt: skip


def payload(first: int, last: int, smallest: int, largest: int) -> dict[str, Any]:
    return {
        "first_file_id": first,
        "last_file_id": last,
        "smallest_bytes": smallest,
        "largest_bytes": largest,
        "is_prefix": False,
    }


def change(conn: Connection, file_id: int, **columns: Any) -> None:
    conn.execute(update(library_files).where(library_files.c.id == file_id).values(**columns))


def hashed_ids(conn: Connection) -> list[int]:
    query = select(library_files.c.id).where(library_files.c.content_hash.is_not(None))
    return list(conn.scalars(query.order_by(library_files.c.id)))


def test_files_of_one_size_are_hashed_and_a_file_of_its_own_size_is_not(conn: Connection) -> None:
    two, other, _alone = add_files(conn, "photos", [{}, {}, {"size_bytes": 11}])
    assert plan(conn).marked == [two, other]


def test_sizes_are_compared_across_libraries(conn: Connection) -> None:
    (here,) = add_files(conn, "photos", [{}])
    assert plan(conn).marked == []
    (there,) = add_files(conn, "films", [{}])
    assert plan(conn).marked == [here, there]


def test_a_library_that_hashes_all_has_files_of_every_size_hashed(conn: Connection) -> None:
    add_files(conn, "photos", [{"size_bytes": 3}])
    ids = add_files(conn, "films", [{"size_bytes": 1}, {"size_bytes": 2}])
    assert plan(conn).marked == ids


@pytest.mark.parametrize("has_links", [False, True])
@pytest.mark.parametrize("library", [None, "photos", "films"])
def test_what_a_scan_has_marked_already_makes_no_difference(
    conn: Connection, library: str | None, *, has_links: bool
) -> None:
    sizes = (0, 1, 2, 2, 300_000, 300_000, 400_000)
    files = [{"size_bytes": size} for size in sizes] + [LINKS, LINKS] * has_links
    files += [{"size_bytes": 2, "is_missing": True}, content(1), {"size_bytes": 9}]
    for name in ("photos", "films", "paused", "trash"):
        add_files(conn, name, files)
    expected = plan(conn, library)
    assert expected.marked
    for is_marked in (True, False):
        conn.execute(
            update(library_files)
            .where(library_files.c.content_hash.is_(None), ~library_files.c.is_missing)
            .values(needs_hash=is_marked)
        )
        assert plan(conn, library) == expected
    assert hashed_ids(conn) != []


def test_one_that_is_marked_although_it_has_a_hash_is_hashed_again(conn: Connection) -> None:
    again, copy, alone = add_files(
        conn, "photos", [content(1), content(1), content(2) | {"size_bytes": 77}]
    )
    for file_id in (again, alone):
        change(conn, file_id, needs_hash=True)
    assert plan(conn).marked == [again]
    # Nobody wants the other one anew, and what it had counts no more.
    assert hashed_ids(conn) == [again, copy]


@pytest.mark.parametrize("library", ["photos", "films"])
def test_an_empty_file_is_never_hashed(conn: Connection, library: str) -> None:
    add_files(conn, library, [{"size_bytes": 0}] * 3)
    assert plan(conn) == Planned([], [], 0, 0)


@pytest.mark.parametrize("second", ["photos", "films"])
def test_of_the_names_of_one_file_exactly_one_is_hashed(conn: Connection, second: str) -> None:
    names = add_files(conn, "photos", [LINKS, LINKS]) + add_files(conn, second, [LINKS])
    (copy,) = add_files(conn, "photos", [{}])
    marked = plan(conn).marked
    assert copy in marked
    assert len(set(names) & set(marked)) == 1
    assert len(marked) == 2


def test_the_names_of_one_file_are_no_reason_to_hash_it(conn: Connection) -> None:
    add_files(conn, "photos", [LINKS] * 3)
    add_files(conn, "paused", [LINKS])
    assert plan(conn).marked == []


def test_one_inode_number_on_two_disks_is_two_files(conn: Connection) -> None:
    ids = add_files(conn, "photos", [LINKS, LINKS | {"device": 6}])
    assert plan(conn).marked == ids


def test_a_paused_library_is_not_hashed_but_its_files_count(conn: Connection) -> None:
    add_files(conn, "paused", [{}, {}])
    assert plan(conn).marked == []
    (here,) = add_files(conn, "photos", [{}])
    assert plan(conn).marked == [here]


def test_a_name_in_an_active_library_is_hashed_before_one_in_a_paused(conn: Connection) -> None:
    add_files(conn, "paused", [LINKS])
    (name,) = add_files(conn, "photos", [LINKS])
    (copy,) = add_files(conn, "photos", [{}])
    assert plan(conn).marked == [name, copy]


def test_a_library_paused_after_the_marks_leaves_no_shard(conn: Connection) -> None:
    marked = plan_of_pair(conn).marked
    conn.execute(update(libraries).where(libraries.c.slug == "photos").values(is_active=False))
    paused = plan(conn)
    assert (paused.shards, paused.total_items) == ([], 0)
    conn.execute(update(libraries).where(libraries.c.slug == "photos").values(is_active=True))
    assert (plan(conn).marked, plan(conn).total_items) == (marked, 2)


def plan_of_pair(conn: Connection) -> Planned:
    add_files(conn, "photos", [{}, {}])
    return plan(conn)


def test_a_library_in_the_trash_is_not_hashed_and_does_not_count(conn: Connection) -> None:
    add_files(conn, "trash", [{}, {}])
    add_files(conn, "photos", [{}])
    assert plan(conn).marked == []


def test_a_missing_file_is_not_hashed_and_does_not_count(conn: Connection) -> None:
    add_files(conn, "photos", [{}, {"is_missing": True}])
    assert plan(conn).marked == []


def test_a_file_with_a_hash_is_not_hashed_again(conn: Connection) -> None:
    add_files(conn, "photos", [content(1)])
    (new,) = add_files(conn, "photos", [{}])
    assert plan(conn).marked == [new]
    assert plan(conn, "films").total_items == 0


@pytest.mark.parametrize("names", [[content(1), {}], [{}, content(1)]], ids=["older", "newer"])
def test_the_other_name_of_a_hashed_file_is_not_hashed(
    conn: Connection, names: list[dict[str, Any]]
) -> None:
    add_files(conn, "photos", [content(1), *(LINKS | name for name in names)])
    before = hashed_ids(conn)
    assert plan(conn).marked == []
    assert hashed_ids(conn) == before


def test_hard_links_that_both_had_a_hash_are_no_group(conn: Connection) -> None:
    names = add_files(conn, "photos", [LINKS | content(1), LINKS | content(1)])
    summarise_all(conn)
    assert len(summarised_groups(conn)) == 1
    assert plan(conn).marked == []
    assert hashed_ids(conn) == names[:1]
    assert summarised_groups(conn) == []


def test_extra_names_leave_their_group_to_the_real_copies(conn: Connection) -> None:
    linked = LINKS | content(1)
    first, *_, copy = add_files(conn, "photos", [linked, linked, linked, content(1)])
    summarise_all(conn)
    plan(conn)
    assert hashed_ids(conn) == [first, copy]
    assert [group.file_count for group in summarised_groups(conn)] == [2]
    assert summarised_groups(conn) == expected_groups(conn)


def test_another_name_is_hashed_when_the_one_with_the_hash_goes_missing(conn: Connection) -> None:
    carrier, other = add_files(conn, "photos", [LINKS | content(1), LINKS])
    add_files(conn, "photos", [content(1)])
    assert plan(conn).marked == []
    change(conn, carrier, is_missing=True)
    assert plan(conn).marked == [other]


def test_the_mark_moves_when_its_name_is_not_the_first_any_more(conn: Connection) -> None:
    back, name = add_files(conn, "photos", [LINKS | {"is_missing": True}, LINKS])
    (copy,) = add_files(conn, "photos", [{}])
    assert plan(conn).marked == [name, copy]
    change(conn, back, is_missing=False)
    assert plan(conn).marked == [back, copy]


def test_the_totals_of_a_job_are_those_of_its_shards(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_FILES", 2)
    monkeypatch.setattr(hashing, "RUN_FILES", 1)
    ids = add_files(conn, "photos", [{"size_bytes": size} for size in (4, 4, 9, 9, 9)])
    planned = plan(conn)
    assert (planned.total_items, planned.total_bytes) == (5, 35)
    assert planned.shards == [
        (
            f"files-{first}-{last}",
            payload(first, last, 0, 262_144),
            files,
            size,
        )
        for first, last, files, size in (
            (ids[4], ids[4], 1, 9),
            (ids[2], ids[3], 2, 18),
            (ids[0], ids[1], 2, 8),
        )
    ]


def test_the_smallest_shards_come_last_so_that_workers_end_together(conn: Connection) -> None:
    add_files(conn, "photos", [{"size_bytes": 4}] * 15_000)
    files = [count for _key, _payload, count, _bytes in plan(conn).shards]
    # The first is what was left over.
    assert files[1:] == sorted(files[1:], reverse=True)
    assert files[1] > files[-1] >= 6000


def test_large_files_are_cut_by_their_sizes_and_small_ones_by_their_ids(conn: Connection) -> None:
    sizes = (900_000, 5, 300_000, 900_000, 5, 300_000)
    ids = add_files(conn, "photos", [{"size_bytes": size} for size in sizes])
    large, small = plan(conn).shards
    assert small == (f"files-{ids[1]}-{ids[4]}", payload(ids[1], ids[4], 0, 262_144), 2, 10)
    key = f"files-{ids[0]}-{ids[5]}-of-300000-to-900000"
    assert large == (key, payload(ids[0], ids[5], 300_000, 900_000), 4, 2_400_000)


def test_beginnings_come_first_of_sizes_that_have_more_files_than_a_shard(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_FILES", 2)
    sizes = (300_000, 900_000, 900_000, 300_000, 900_000)
    ids = add_files(conn, "photos", [{"size_bytes": size} for size in sizes])
    keys = [key for key, *_rest in plan(conn).shards]
    assert keys == [
        f"prefix-{ids[1]}-{ids[4]}",
        f"files-{ids[0]}-{ids[3]}-of-300000-to-300000",
        f"files-{ids[1]}-{ids[2]}-of-900000-to-900000",
        f"files-{ids[4]}-{ids[4]}-of-900000-to-900000",
    ]


def test_a_job_for_one_library_is_given_the_files_of_that_one(conn: Connection) -> None:
    first, _film, last = [add_files(conn, name, [{}])[0] for name in ("photos", "films", "photos")]
    planned = plan(conn, "photos")
    assert (planned.total_items, planned.total_bytes) == (2, 20)
    assert planned.shards[0][0] == f"files-{first}-{last}"
    assert plan(conn, "films").total_items == 1


def test_planning_again_changes_nothing(conn: Connection) -> None:
    add_files(conn, "photos", [{}, {}, LINKS, LINKS, content(1), {"size_bytes": 2}])
    add_files(conn, "films", [{"size_bytes": 3}])
    first = plan(conn)
    files = select(library_files).order_by(library_files.c.id)
    before = conn.execute(files).all()
    assert first.total_items == 4
    assert plan(conn) == first
    assert conn.execute(files).all() == before


def test_hashes_of_another_algorithm_than_the_librarys_are_made_anew(conn: Connection) -> None:
    ids = add_files(
        conn,
        "photos",
        [
            content(1) | {"rel_path": b"a", "size_bytes": 10, "device": 1, "inode": 1},
            content(1) | {"rel_path": b"b", "size_bytes": 10, "device": 1, "inode": 2},
        ],
    )
    summarise_all(conn)
    assert len(summarised_groups(conn)) == 1
    conn.execute(update(libraries).values(hash_algorithm="sha256"))
    assert plan(conn).marked == ids
    assert summarised_groups(conn) == []
