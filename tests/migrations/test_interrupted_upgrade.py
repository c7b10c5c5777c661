"""An upgrade that is killed anywhere is finished by the next; two at once do not collide."""

import signal

from mediaplane.protocol import migration
from tests.migrations.databases import NewDatabases, Row, add, connected, contents
from tests.migrations.schema import Schema, schema_of
from tests.migrations.test_legacy_values import LEGACY
from tests.migrations.upgrades import Upgrades
from tests.migrations.whole import add_one_row_everywhere
from tests.support.points import share

# What the upgrade writes by the clock.
TIMES = ("created_at", "updated_at", "next_run_at")


def legacy_database(databases: NewDatabases) -> str:
    url = databases.at("0009_assets")
    with connected(url) as conn:
        add_one_row_everywhere(conn, is_upper_case=True)
        for jobs in LEGACY.values():
            add(conn, "jobs", *(row for row, _code in jobs))
    return url


def state_of(url: str) -> tuple[Schema, dict[str, list[Row]]]:
    with connected(url) as conn:
        rows = contents(conn, ignored=TIMES)
        # A number that PostgreSQL gave out stays given, also when nothing came of it.
        rows["events"] = sorted((row | {"id": 0} for row in rows["events"]), key=str)
        return schema_of(conn), rows


def points_to_kill_at(changes: list[str], stride: int) -> list[int]:
    """Return the numbers of changes: all around the end of a revision, and a sample of the rest."""
    # The note of a revision is part of its transaction, and gone with it.
    ends = ("BEGIN", "COMMIT")
    turning = {n for n, change in enumerate(changes, start=1) if change.startswith(ends)}
    return sorted(turning | set(range(1, len(changes) + 1, stride)))


def test_a_killed_upgrade_of_a_legacy_database_is_finished_by_the_next(
    database: str, databases: NewDatabases, upgrades: Upgrades
) -> None:
    legacy = legacy_database(databases)
    unkilled = databases.copy(legacy)
    changes = upgrades.changes(unkilled)
    expected = state_of(unkilled)
    points = points_to_kill_at(changes, stride=24)
    assert len(points) > 10
    for point in share(points, is_sqlite=database == "sqlite"):
        url = databases.copy(legacy)
        assert upgrades.kill_before(point, url) == -signal.SIGKILL
        migration.upgrade(url)
        assert state_of(url) == expected, f"killed before {changes[point - 1]}"


def test_a_killed_first_upgrade_is_finished_by_the_next(
    databases: NewDatabases, upgrades: Upgrades
) -> None:
    unkilled = databases.empty()
    changes = upgrades.changes(unkilled)
    expected = state_of(unkilled)
    for point in range(1, len(changes) + 1, 43):
        url = databases.empty()
        assert upgrades.kill_before(point, url) == -signal.SIGKILL
        migration.upgrade(url)
        assert state_of(url) == expected, f"killed before {changes[point - 1]}"


def test_an_upgrade_started_during_another_waits_and_both_end_well(
    databases: NewDatabases, upgrades: Upgrades
) -> None:
    url = databases.empty()
    assert upgrades.race(url) == [0, 0]
    with connected(url) as conn, connected(databases.at("head")) as other:
        assert schema_of(conn) == schema_of(other)
