"""A control plane is killed at any point of what it does bite by bite, and others take over."""

import signal
from itertools import count
from typing import Any

from sqlalchemy import delete, select

from control_plane.policy import admission, duplicates, hashing
from control_plane.policy.admission import Wanted
from mediaplane.protocol.tables import (
    duplicate_groups,
    events,
    job_items,
    jobs,
    libraries,
    library_files,
)
from mediaplane.protocol.values import JobKind
from tests.faults.site import Site
from tests.support.files import add_files, add_library, content, summarise_all

LINKS = {"device": 5, "inode": 77}


def test_a_plan_is_made_whole_whoever_dies_on_the_way(site: Site) -> None:
    expected: Any = None
    for die_at in count(1):
        clear(site)
        admit_hash(site)
        code = site.zygote.wait(
            site.zygote.start("plan_mortally", url=site.database.url, die_at=die_at)
        )
        if code == 0:
            break
        assert code == -signal.SIGKILL
        check_summary(site)
        hashing.resume(site.database.control)
        check_summary(site)
        found = planned(site)
        expected = expected or found
        assert found == expected
    print(f"{die_at - 1} points of death")  # noqa: T201
    assert die_at > 20
    assert planned(site) == expected
    files, items, totals = expected
    assert not any(is_missing for *_, is_missing in files)  # the one that moved was followed
    assert (items, totals) == ([(2, 20)], ("pending", 2, 20))


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
