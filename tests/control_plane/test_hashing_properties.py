"""Whatever the libraries hold, a file that may have a duplicate is hashed once."""

from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select

from mediaplane.protocol.tables import events, job_items, jobs, libraries, library_files
from tests.support.databases import Databases
from tests.support.files import add_files, add_library, content
from tests.support.hashing import plan_hash

FILES = st.lists(
    st.fixed_dictionaries(
        {
            "library": st.sampled_from(["photos", "second", "paused", "trash"]),
            "size_bytes": st.integers(0, 2),
            "device": st.integers(1, 2),
            "inode": st.integers(1, 3),
            "is_missing": st.booleans(),
            "is_hashed": st.booleans(),
            "needs_hash": st.booleans(),
        }
    ),
    max_size=12,
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(files=FILES)
def test_every_possible_duplicate_has_one_name_with_a_hash_or_a_mark(
    database: Databases, files: list[dict[str, Any]]
) -> None:
    with database.control.write() as conn:
        for table in (job_items, events, jobs, library_files, libraries):
            conn.execute(delete(table))
        add_library(conn, "photos")
        add_library(conn, "second")
        add_library(conn, "paused", is_active=False)
        add_library(conn, "trash", deleted_at=1)
        for number, file in enumerate(files):
            row = dict(file)
            library, is_hashed = row.pop("library"), row.pop("is_hashed")
            hashed = content(number) | {"needs_hash": False} if is_hashed else {}
            add_files(conn, library, [row | hashed])
    plan_hash(database.control)
    with database.control.read() as conn:
        check_marks(conn)


def check_marks(conn: Connection) -> None:
    by_file = defaultdict(list)
    query = select(library_files).where(
        ~library_files.c.is_missing,
        library_files.c.size_bytes > 0,
        library_files.c.library_id != "trash",
    )
    for row in conn.execute(query).mappings():
        by_file[row["size_bytes"], row["device"], row["inode"]].append(row)
    for (size, *_), names in by_file.items():
        carried = [row for row in names if row["needs_hash"] or row["content_hash"] is not None]
        assert len(carried) <= 1
        has_peer = sum(other[0] == size for other in by_file) > 1
        if has_peer and any(row["library_id"] != "paused" for row in names):
            assert len(carried) == 1
