"""The summary of duplicates falls apart by tenant, and comes together again."""

from sqlalchemy import text

from mediaplane.protocol import migration
from tests.migrations.databases import NewDatabases, connected
from tests.support.files import add_files, add_library, content

GROUPS = "SELECT {columns} FROM duplicate_groups ORDER BY {columns}"


def groups(url: str, columns: str) -> list[tuple[object, ...]]:
    with connected(url) as conn:
        return [tuple(row) for row in conn.execute(text(GROUPS.format(columns=columns)))]


def test_a_group_of_several_tenants_becomes_one_of_each(databases: NewDatabases) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        for tenant, copies in (("default", 1), ("north", 2), ("south", 3)):
            add_library(conn, tenant, tenant_id=tenant)
            add_files(conn, tenant, [content(1)] * copies)
        add_library(conn, "trash", tenant_id="north", deleted_at=1)
        add_files(conn, "trash", [content(1)] * 4)
    migration.downgrade(url, "0019_schedules")
    assert groups(url, "file_count, size_bytes, total_size_bytes, reclaimable_bytes") == [
        (6, 10, 60, 50)
    ]
    migration.upgrade(url)
    assert groups(url, "tenant_id, file_count, total_size_bytes") == [
        ("north", 2, 20),
        ("south", 3, 30),
    ]
