"""0010_protocol_values: upper-case values and several active jobs, as older versions left them."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from mediaplane.protocol import migration
from mediaplane.protocol.tables import metadata
from tests.migrations.databases import NewDatabases, Row, add, connected, contents, rows_of
from tests.migrations.whole import add_one_row_everywhere

BEFORE, AFTER = "0009_assets", "0010_protocol_values"
KEPT, DUPLICATE, EXTRA = None, "recovered_duplicate_running", "recovered_extra_pending"


def job(status: str, kind: str = "SCAN", **more: object) -> Row:
    lease: Row = {"worker_id": "w", "lease_epoch": 3} if status.lower() == "running" else {}
    return {"kind": kind, "status": status, "created_at": 5, "updated_at": 5} | lease | more


def beat(at: int | None, expires: int | None, status: str = "RUNNING", kind: str = "SCAN") -> Row:
    return job(status, kind, worker_heartbeat_at=at, lease_expires_at=expires)


# Each: jobs in the order of their ids, with the code that the upgrade is to leave on them.
LEGACY: dict[str, list[tuple[Row, str | None]]] = {
    "the latest heartbeat wins": [
        (beat(100, 900), DUPLICATE),
        (beat(None, 999), DUPLICATE),
        (beat(300, 400, "running", "hash"), KEPT),
        (beat(200, 900, "Running", "Hash"), DUPLICATE),
    ],
    "of equal heartbeats the highest expiry wins": [
        (beat(300, 400), DUPLICATE),
        (beat(300, None), DUPLICATE),
        (beat(300, 500, kind="HASH"), KEPT),
    ],
    "without heartbeats the highest expiry wins": [
        (beat(None, None), DUPLICATE),
        (beat(None, 7), KEPT),
        (beat(None, 6), DUPLICATE),
    ],
    "of equals the lowest id wins": [
        (beat(300, 400), KEPT),
        (beat(300, 400), DUPLICATE),
        (beat(300, 400), DUPLICATE),
    ],
    "of jobs without any lease the lowest id wins": [
        (beat(None, None), KEPT),
        (beat(None, None), DUPLICATE),
    ],
    "beside a running job nothing is pending": [
        (job("PENDING"), EXTRA),
        (beat(1, 2), KEPT),
        (job("pending", "hash"), EXTRA),
    ],
    "of pending jobs the oldest stays": [
        (job("PENDING", created_at=9), EXTRA),
        (job("pending", "HASH", created_at=4), KEPT),
        (job("Pending", created_at=4), EXTRA),
    ],
    "one active job stays": [(job("PENDING"), KEPT)],
    "other kinds and other states are nobody's rivals": [
        (beat(1, 2), KEPT),
        (beat(3, 4, kind="DELETE"), KEPT),
        (beat(3, 4, kind="THUMBNAIL"), KEPT),
        (job("PENDING", "DELETE"), KEPT),
        (job("COMPLETED"), KEPT),
        (job("FAILED", error_code="broken"), KEPT),
        (job("CANCELLED"), KEPT),
        (job("RETRYABLE"), KEPT),
        (job("SKIPPED", skip_reason="nothing to do"), KEPT),
    ],
}


@pytest.mark.parametrize("case", LEGACY)
def test_one_scan_or_hash_stays_active(databases: NewDatabases, case: str) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        add(conn, "jobs", *(row for row, _code in LEGACY[case]))
        before = {row["id"]: row for row in rows_of(conn, "jobs")}
    migration.upgrade(url, AFTER)
    with connected(url) as conn:
        after = {row["id"]: row for row in rows_of(conn, "jobs")}
        events = rows_of(conn, "events")
    put_back = []
    for job_id, (_row, code) in enumerate(LEGACY[case], start=1):
        expected = before[job_id]
        expected["kind"] = expected["kind"].lower()
        expected["status"] = expected["status"].lower()
        if code:
            message, updated_at = (after[job_id][name] for name in ("error_message", "updated_at"))
            expected |= {
                "status": "retryable",
                "error_code": code,
                "error_message": message,
                "worker_id": None,
                "worker_heartbeat_at": None,
                "lease_expires_at": None,
                "updated_at": updated_at,
            }
            assert message.endswith("the upgrade kept only that one.")
            assert updated_at > 1_600_000_000_000
            put_back.append((job_id, "job_error", updated_at))
        assert after[job_id] == expected
    assert sorted((e["job_id"], e["type"], e["created_at"]) for e in events) == put_back


def test_afterwards_a_second_active_job_is_refused(databases: NewDatabases) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        add(conn, "jobs", *(row for row, _code in LEGACY["the latest heartbeat wins"]))
    migration.upgrade(url, AFTER)
    with pytest.raises(IntegrityError), connected(url) as conn:
        add(conn, "jobs", job("pending", "hash"))


def test_every_value_becomes_lower_case_and_nothing_else_changes(databases: NewDatabases) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        add_one_row_everywhere(conn, is_upper_case=True)
        conn.execute(text("UPDATE library_files SET media_type = 'VIDEO'"))
        expected = contents(conn)
    changed = 0
    for table, rows in expected.items():
        if table == "alembic_version":
            rows[0]["version_num"] = AFTER
            continue
        legal = {c.name for c in metadata.tables[table].columns if "legal" in c.info}
        for column in legal | ({"media_type"} if table == "library_files" else set()):
            rows[0][column] = rows[0][column].lower()
            changed += 1
    assert changed >= 20
    migration.upgrade(url, AFTER)
    with connected(url) as conn:
        assert contents(conn) == expected


def test_thumbnails_that_differ_only_in_case_become_one(databases: NewDatabases) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        add_one_row_everywhere(conn)
        (kept,) = rows_of(conn, "thumbnails")
        twin = {k: v for k, v in kept.items() if k != "id" and v is not None} | {"format": "JPEG"}
        add(conn, "thumbnails", twin, twin | {"format": "WEBP"})
    migration.upgrade(url, AFTER)
    with connected(url) as conn:
        found = [(row["id"], row["format"]) for row in rows_of(conn, "thumbnails")]
    assert sorted(found) == [(1, "jpeg"), (3, "webp")]


def test_the_number_of_a_deleted_row_is_not_given_again(databases: NewDatabases) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        add(conn, "jobs", job("COMPLETED"), job("COMPLETED"), job("COMPLETED"))
        conn.execute(text("DELETE FROM jobs WHERE id > 1"))
        add(conn, "wal_maintenance_jobs", *[checkpoint() for _ in range(4)])
        conn.execute(text("DELETE FROM wal_maintenance_jobs"))
    migration.upgrade(url)
    with connected(url) as conn:
        add(conn, "jobs", job("completed", "scan"))
        add(conn, "wal_maintenance_jobs", checkpoint())
        ids = [[r["id"] for r in rows_of(conn, t)] for t in ("jobs", "wal_maintenance_jobs")]
    assert ids == [[1, 4], [5]]


def checkpoint() -> Row:
    return {"requested_mode": "passive", "execute_after": 1, "created_at": 1, "updated_at": 1}
