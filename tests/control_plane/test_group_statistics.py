"""The figures about all duplicates are those of the groups they sum up."""

from control_plane.store import statistics
from tests.support.databases import Databases
from tests.support.files import add_files, add_library, content, expected_groups, summarise_all

LARGE = 2**50


def test_without_duplicates_all_figures_are_zero(database: Databases) -> None:
    with database.control.write() as conn:
        add_files(conn, add_library(conn, "photos"), [content(1), content(2), {}])
        summarise_all(conn)
        assert set(statistics.groups(conn, None).values()) == {0}


def test_the_figures_are_the_sums_over_all_groups(database: Databases) -> None:
    rows = [content(1)] * 3 + [content(2) | {"size_bytes": LARGE}] * 2
    rows += [content(3), content(3) | {"is_missing": True}, content(3) | {"needs_hash": True}]
    with database.control.write() as conn:
        add_files(conn, add_library(conn, "photos"), rows)
        summarise_all(conn)
        figures, groups = statistics.groups(conn, None), expected_groups(conn)
    assert figures["groups"] == len(groups) == 2
    assert figures["grouped_files"] == sum(group.file_count for group in groups) == 5
    assert figures["duplicate_files"] == 3
    assert figures["reclaimable_bytes"] == 2 * 10 + LARGE
