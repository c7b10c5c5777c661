"""A control plane is killed at any point of what it does bite by bite, and others take over."""

import signal
from itertools import count
from typing import Any

import pytest
from sqlalchemy import delete, select

from control_plane.policy import admission, duplicates, planning, regrouping
from control_plane.policy.admission import Wanted
from control_plane.store import groups
from mediaplane.protocol.tables import (
    duplicate_groups,
    events,
    job_items,
    jobs,
    libraries,
    library_files,
)
from mediaplane.protocol.values import JobKind
from tests.faults.scenarios import LIBRARY
from tests.faults.site import Site
from tests.support.files import add_files, add_library, content, digest, summarise_all
from tests.support.points import share
from tests.support.waiting import eventually

LINKS = {"device": 5, "inode": 77}


def test_a_plan_is_made_whole_whoever_dies_on_the_way(site: Site) -> None:
    expected: Any = None
    for die_at in share(count(1), is_sqlite=site.database.control.dialect == "sqlite"):
        clear(site)
        admit_hash(site)
        code = site.zygote.wait(
            site.zygote.start("plan_mortally", url=site.database.url, die_at=die_at)
        )
        if code == 0:
            break
        assert code == -signal.SIGKILL
        check_summary(site)
        eventually(lambda: is_planned(site))
        check_summary(site)
        found = planned(site)
        expected = expected or found
        assert found == expected
    print(f"lived on at point {die_at}")  # noqa: T201
    assert die_at > 20
    assert planned(site) == expected
    files, items, totals = expected
    assert not any(is_missing for *_, is_missing in files)  # the one that moved was followed
    assert (items, totals) == ([(2, 20)], ("pending", 2, 20))


@pytest.mark.parametrize(("role", "is_hidden"), [("remove", True), ("restore", False)])
def test_a_library_is_hidden_or_shown_and_its_groups_are_right_whoever_dies(
    site: Site, role: str, is_hidden: bool
) -> None:
    for die_at in share(count(1), is_sqlite=site.database.control.dialect == "sqlite"):
        clear(site)
        fill_trash(site, is_hidden=not is_hidden)
        code = site.zygote.wait(
            site.zygote.start(f"{role}_mortally", url=site.database.url, die_at=die_at)
        )
        listed = shown(site)
        is_gone = is_in_trash(site)
        # Nothing of what is hidden shows, whatever is left to count.
        if is_gone:
            assert listed == WITHOUT
        assert SAME not in listed
        regrouping.settle_all(site.database.control)
        check_summary(site)
        assert shown(site) == (WITHOUT if is_gone else WITH)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    print(f"lived on at point {die_at}")  # noqa: T201
    assert is_in_trash(site) == is_hidden
    assert die_at > 20


# Contents with the number of their copies, while the library of the kills counts and while not.
WITH = {1: 3, 2: 2, 3: 2}
WITHOUT = {1: 2}
# That of a file with two names, which is no duplicate of itself.
SAME = 4


def fill_trash(site: Site, *, is_hidden: bool) -> None:
    """Leave two libraries with copies in common, the first of them in the trash or not."""
    with site.database.control.write() as conn:
        add_library(conn, LIBRARY, deleted_at=1 if is_hidden else None)
        add_library(conn, "films")
        add_files(conn, LIBRARY, [content(1), content(2), content(3), content(3)])
        add_files(conn, "films", [content(1), content(1), content(2)])
        if is_hidden:  # another name of a file was hashed meanwhile
            add_files(conn, LIBRARY, [LINKS | content(SAME)])
            add_files(conn, "films", [LINKS | content(SAME)])
        summarise_all(conn)


def shown(site: Site) -> dict[int, int]:
    """Return how many copies a page of groups shows of each content."""
    numbers = {digest(number): number for number in range(10)}
    with site.database.control.read() as conn:
        page, _tail = groups.page(conn, None, groups.COPIES, groups.Filter(), limit=100, after=None)
    rows = [dict(zip(groups.SHOWN, row, strict=False)) for row in page]
    return {numbers[row["content_hash"]]: row["file_count"] for row in rows}


def is_in_trash(site: Site) -> bool:
    with site.database.control.read() as conn:
        query = select(libraries.c.deleted_at).where(libraries.c.slug == LIBRARY)
        return conn.scalar(query) is not None


def clear(site: Site) -> None:
    with site.database.control.write() as conn:
        for table in (events, job_items, jobs, duplicate_groups, library_files, libraries):
            conn.execute(delete(table))


def admit_hash(site: Site) -> None:
    """Leave files of which each needs another change, and a hash job without a plan."""
    moved = content(5) | {"size_bytes": 50}
    with site.database.control.write() as conn:
        add_library(conn, "photos")
        add_files(
            conn,
            "photos",
            [
                {},
                {},
                LINKS | content(1),
                LINKS | content(1),
                content(1),
                {"size_bytes": 99, "needs_hash": True},
                moved | {"is_missing": True, "created_at": 1, "updated_at": 1},
                moved | {"created_at": 2},
            ],
        )
        summarise_all(conn)
        admission.create(conn, Wanted(JobKind.HASH))


def is_planned(site: Site) -> bool:
    """Have a plan made, which PostgreSQL allows once it has noticed the death of the last one."""
    planning.resume(site.database.control)
    with site.database.control.read() as conn:
        return conn.scalar(select(jobs.c.total_items)) is not None


def planned(site: Site) -> tuple[list[Any], list[Any], Any]:
    """What a plan comes to: the state of the files, the items and the totals."""
    with site.database.control.read() as conn:
        files = select(
            library_files.c.rel_path, library_files.c.needs_hash, library_files.c.content_hash,
            library_files.c.is_missing,
        ).order_by(library_files.c.rel_path)  # fmt: skip
        items = select(job_items.c.total_items, job_items.c.total_bytes)
        totals = select(jobs.c.status, jobs.c.total_items, jobs.c.total_bytes)
        return (
            list(map(tuple, conn.execute(files))),
            list(map(tuple, conn.execute(items))),
            tuple(conn.execute(totals).one()),
        )


def check_summary(site: Site) -> None:
    assert duplicates.verify(site.database.control, None, repair=False).wrong_groups == 0
