"""The migrations build the schema of tables.py, and take it down again."""

import warnings

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import TextClause, text

from mediaplane.protocol import migration, tables
from mediaplane.protocol.engines import checked_url
from tests.migrations.databases import NewDatabases, add, connected
from tests.migrations.schema import Schema, names, schema_of
from tests.migrations.whole import add_one_row_everywhere

REVISIONS = [
    "0001_libraries",
    "0002_library_files",
    "0003_jobs",
    "0004_events",
    "0005_scan_sessions",
    "0006_thumbnails",
    "0007_io_rate_limits",
    "0008_wal_maintenance",
    "0009_assets",
    "0010_protocol_values",
    "0011_duplicate_group_query_indexes",
    "0012_lease_engine",
    "0013_library_settings",
    "0014_verify_and_sweep",
    "0015_prefix_and_end",
    "0016_media",
    "0017_lookups",
    "0018_access",
    "0019_schedules",
    "0020_tenants",
    "0021_single_checkpoint",
    "0022_traces",
    "0023_thumbnail_groups",
    "0024_regrouping",
    "0025_active_verify",
    "0026_thumbnail_claims",
    "0027_large_files",
    "0028_scan_batches",
]
# They change rows, and no table.
OF_ROWS_ONLY = {"0015_prefix_and_end"}
# They came after the revision that the rows are taken back to.
NEW_TABLES = {"tokens", "audit_log", "scan_batches"}


def schema_at(url: str) -> Schema:
    with connected(url) as conn:
        return schema_of(conn)


def schema_of_tables(databases: NewDatabases) -> Schema:
    url = databases.empty()
    with connected(url) as conn:
        tables.metadata.create_all(conn)
        return schema_of(conn)


def test_an_upgrade_a_downgrade_to_nothing_and_an_upgrade_again_end_alike(
    databases: NewDatabases,
) -> None:
    url = databases.empty()
    migration.upgrade(url)
    first = schema_at(url)
    migration.downgrade(url, "base")
    assert (schema_at(url), migration.current(url)) == ({}, None)
    migration.upgrade(url)
    assert schema_at(url) == first
    assert migration.is_current(url)


def test_the_schema_is_that_of_the_tables(databases: NewDatabases) -> None:
    assert schema_at(databases.at("head")) == schema_of_tables(databases)


def test_alembic_finds_no_difference_to_the_tables(databases: NewDatabases) -> None:
    # Of an index that is not on plain columns SQLite tells too little, and full text search is
    # built of other things there; the exact comparison above covers them.
    untold = {
        index.name
        for table in tables.metadata.tables.values()
        for index in table.indexes
        if any(isinstance(part, TextClause) for part in index.expressions)
    } | {"ix_video_frames_search"}

    def is_told(_item: object, name: str | None, kind: str, *_more: object) -> bool:
        if kind == "index":
            return conn.dialect.name != "sqlite" or name not in untold
        if kind == "foreign_key_constraint":
            return conn.dialect.name == "sqlite" or name != "fk_events_job_id"
        return kind != "table" or not str(name).startswith("video_frames_search")

    with connected(databases.at("head")) as conn, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*expression-based index")
        options = {"compare_server_default": True, "include_object": is_told}
        context = MigrationContext.configure(conn, opts=options)
        assert compare_metadata(context, tables.metadata) == []


def test_each_revision_can_be_taken_back(databases: NewDatabases) -> None:
    url = databases.empty()
    steps = []
    for revision in REVISIONS:
        before = schema_at(url)
        migration.upgrade(url, revision)
        assert migration.current(url) == revision
        after = schema_at(url)
        assert (before == after) is (revision in OF_ROWS_ONLY)
        steps.append((before, revision, after))
    assert migration.is_current(url)
    below = ["base", *REVISIONS]
    for (before, revision, after), target in zip(
        reversed(steps), reversed(below[:-1]), strict=True
    ):
        assert (migration.current(url), schema_at(url)) == (revision, after)
        migration.downgrade(url, target)
        assert schema_at(url) == before


def test_a_downgrade_and_an_upgrade_keep_the_rows(databases: NewDatabases) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        add_one_row_everywhere(conn)
    migration.downgrade(url, "0009_assets")
    migration.upgrade(url)
    with connected(url) as conn:
        # The one file is in no group of several, so the summary has no row. Schedules are made
        # anew, as every installation begins with them.
        others = dict.fromkeys(["duplicate_groups", *NEW_TABLES], 0) | {"schedules": 6}
        for table in tables.metadata.tables:
            expected = others.get(table, 1)
            assert conn.execute(text(f"SELECT count(*) FROM {table}")).scalar() == expected, table


def test_an_upgrade_to_an_older_revision_changes_nothing(databases: NewDatabases) -> None:
    url = databases.at("head")
    migration.upgrade(url, "0003_jobs")
    assert migration.is_current(url)


@pytest.mark.parametrize("table", ["assets", "library_files"])
def test_a_path_is_unique_within_its_library(databases: NewDatabases, table: str) -> None:
    schema = schema_at(databases.at("head"))
    name = f"uq_{table}_library_id_rel_path"
    if f"table {table}" in schema:
        assert f"CONSTRAINT {name} UNIQUE (library_id, rel_path)" in str(schema[f"table {table}"])
    else:
        assert schema[f"constraint {table}.{name}"] == ["UNIQUE (library_id, rel_path)"]
        assert "UNIQUE INDEX" in str(schema[f"index {table}.{name}"])


def test_frames_are_found_by_their_words(databases: NewDatabases) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        add_one_row_everywhere(conn)
        conn.execute(text("UPDATE video_frames SET search_vector = 'harbour'"))
        frame = {"asset_id": 1, "timestamp_ms": 9, "is_keyframe": True, "search_vector": "bridge"}
        add(conn, "video_frames", frame)
        if conn.dialect.name == "sqlite":
            found = "SELECT rowid FROM video_frames_search WHERE video_frames_search MATCH :word"
        else:
            found = "SELECT id FROM video_frames WHERE search_vector @@ to_tsquery('simple', :word)"
        words = ("harbour", "bridge", "nothing")
        assert [conn.execute(text(found), {"word": w}).scalars().all() for w in words] == [
            [1],
            [2],
            [],
        ]


def test_the_search_index_is_what_each_database_has_for_it(databases: NewDatabases) -> None:
    url = databases.at("head")
    schema = schema_at(url)
    if checked_url(url).get_backend_name() == "sqlite":
        assert "USING fts5" in str(schema["table video_frames_search"])
        assert len(names(schema, "trigger video_frames_search_.*")) == 3
    else:
        column = schema["column video_frames.search_vector"]
        assert column == ["tsvector", False, "", None]
        assert "USING gin (search_vector)" in str(
            schema["index video_frames.ix_video_frames_search"]
        )
