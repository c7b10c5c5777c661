"""0021_single_checkpoint: of the checkpoints that have not ended, the newest stays."""

from sqlalchemy import text

from mediaplane.protocol import migration
from tests.migrations.databases import NewDatabases, Row, add, connected

BEFORE = "0020_tenants"


def test_an_upgrade_keeps_the_newest_open_checkpoint_and_ends_the_others(
    databases: NewDatabases,
) -> None:
    url = databases.at(BEFORE)
    row: Row = {"requested_mode": "passive", "execute_after": 1, "created_at": 1, "updated_at": 7}
    held = {"worker_id": "w", "worker_heartbeat_at": 1, "lease_expires_at": 1}
    statuses = ["pending", "completed", "retryable", "running", "pending", "failed"]
    with connected(url) as conn:
        for status in statuses:
            lease = held if status == "running" else {}
            add(conn, "wal_maintenance_jobs", row | {"status": status} | lease)
    migration.upgrade(url)
    with connected(url) as conn:
        found = conn.execute(text("SELECT * FROM wal_maintenance_jobs ORDER BY id")).mappings()
        rows = [dict(one) for one in found]
    ended = {"status": "failed", "error_code": "superseded", "finished_at": 7, "worker_id": None,
             "lease_expires_at": None}  # fmt: skip
    for place in (0, 2, 3):
        assert rows[place].items() >= ended.items()
    assert [rows[place]["status"] for place in (1, 4, 5)] == ["completed", "pending", "failed"]
    assert [rows[place]["error_code"] for place in (1, 4, 5)] == [None, None, None]
