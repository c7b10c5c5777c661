"""The closed value sets, word for word, and that the database itself knows them."""

import inspect
from enum import StrEnum

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from mediaplane.protocol import values
from mediaplane.protocol.tables import metadata
from tests.support.databases import Databases
from tests.support.rows import Rows

# Written out again on purpose: a value that changes by accident must not pass.
SETS = {
    "Plane": {"control", "data"},
    "JobKind": {"scan", "hash", "delete", "thumbnail", "probe", "verify", "sweep"},
    "JobStatus": {
        "pending", "running", "completed", "failed", "cancelled", "retryable", "skipped",
    },
    "JobItemStatus": {"pending", "running", "completed", "failed", "skipped", "cancelled"},
    "EventType": {
        "job_added", "job_started", "item_progress", "item_done", "job_progress", "job_done",
        "job_error", "job_cancelled", "log",
    },
    "ScanStatus": {"idle", "scan_req", "scanning"},
    "ScanSessionStatus": {"running", "succeeded", "failed"},
    "ScanChange": {"seen", "missing"},
    "HashAlgorithm": {"blake3", "sha256"},
    "HashPolicy": {"candidates", "all"},
    "MediaType": {"image", "video"},
    "ThumbnailStatus": {"pending", "running", "ready", "failed"},
    "ThumbnailFormat": {"jpeg", "webp"},
    "CleanupStatus": {"pending", "running", "completed", "failed"},
    "CheckpointMode": {"passive", "restart", "truncate"},
    "CheckpointStatus": {"pending", "running", "retryable", "completed", "failed"},
    "AssetStatus": {
        "pending", "proxied", "extracting", "analyzing", "completed", "failed", "poisoned",
    },
    "ScheduleAction": {"rescan", "verify", "sweep", "cleanup", "retention", "checkpoint"},
    "MissedRuns": {"skip", "run_once"},
    "RunOutcome": {"none", "running", "completed", "failed"},
    "WorkerState": {"idle", "processing", "paused", "offline"},
    "WorkerCommand": {"none", "pause", "resume", "shutdown", "forensic_dump"},
    "Role": {"viewer", "operator", "admin", "worker"},
    "Peer": {"local", "token", "certificate"},
}  # fmt: skip

COLUMNS = {
    "jobs.kind": "JobKind",
    "jobs.status": "JobStatus",
    "job_items.status": "JobItemStatus",
    "events.type": "EventType",
    "libraries.scan_status": "ScanStatus",
    "libraries.hash_policy": "HashPolicy",
    "libraries.hash_algorithm": "HashAlgorithm",
    "library_files.hash_algorithm": "HashAlgorithm",
    "library_files.media_type": "MediaType",
    "scan_sessions.status": "ScanSessionStatus",
    "scan_entries.change": "ScanChange",
    "thumbnails.status": "ThumbnailStatus",
    "thumbnails.media_type": "MediaType",
    "thumbnails.format": "ThumbnailFormat",
    "thumbnail_cleanup_jobs.status": "CleanupStatus",
    "wal_maintenance_jobs.requested_mode": "CheckpointMode",
    "wal_maintenance_jobs.status": "CheckpointStatus",
    "assets.type": "MediaType",
    "assets.status": "AssetStatus",
    "schedules.action": "ScheduleAction",
    "schedules.missed_runs": "MissedRuns",
    "schedules.last_outcome": "RunOutcome",
    "worker_status.state": "WorkerState",
    "worker_status.command": "WorkerCommand",
    "tokens.role": "Role",
    "audit_log.role": "Role",
    "audit_log.peer": "Peer",
}


def defined_sets() -> dict[str, set[str]]:
    return {
        name: {str(value) for value in item}
        for name, item in vars(values).items()
        if inspect.isclass(item) and issubclass(item, StrEnum) and item is not StrEnum
    }


@pytest.mark.parametrize("name", SETS)
def test_the_value_set_holds_exactly_the_legal_values(name: str) -> None:
    assert defined_sets()[name] == SETS[name]


def test_every_value_set_is_written_out_here() -> None:
    assert defined_sets().keys() == SETS.keys()


def test_every_value_is_stored_in_lower_case() -> None:
    stored = {value for values_of_set in defined_sets().values() for value in values_of_set}
    assert {value for value in stored if value != value.lower()} == set()


def test_every_column_of_a_value_set_is_checked_by_its_own_set() -> None:
    checked = {
        f"{table.name}.{column.name}": column.info["legal"].__name__
        for table in metadata.tables.values()
        for column in table.columns
        if "legal" in column.info
    }
    # Two columns may also be NULL; tables.py writes their CHECKs by hand.
    optional = {"library_files.hash_algorithm", "library_files.media_type"}
    assert checked == {column: name for column, name in COLUMNS.items() if column not in optional}


def test_the_shared_io_budget_and_the_only_tenant_have_their_names() -> None:
    assert values.THUMBNAIL_IO_BUCKET == "thumbnail_io_global"
    assert values.DEFAULT_TENANT == "default"


def test_the_database_admits_every_legal_value_and_refuses_any_other(database: Databases) -> None:
    wrong = []
    with database.control.write() as conn:
        rows = Rows(conn)
        for name, values_of_column in COLUMNS.items():
            table, column = name.split(".")
            # An algorithm goes with a digest only.
            hashed = {"hash_algorithm": "blake3", "content_hash": bytes(32)}
            row_key = rows.add(table, **hashed if table == "library_files" else {})
            key = next(iter(metadata.tables[table].primary_key.columns)).name
            update = text(f"UPDATE {table} SET {column} = :value WHERE {key} = :key")
            legal = SETS[values_of_column]
            for value in [*legal, "nonsense", "", *(value.upper() for value in legal)]:
                try:
                    with conn.begin_nested():
                        conn.execute(update, {"value": value, "key": row_key})
                    admitted = True
                except IntegrityError:
                    admitted = False
                if admitted != (value in legal):
                    wrong.append((name, value))
    assert wrong == []
