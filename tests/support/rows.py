"""Rows for tests, each with the rows it depends on."""

from itertools import count
from typing import Any

from sqlalchemy import Connection, insert, select, text

from mediaplane.protocol import packs
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.tables import metadata

LONG_AGO = 1_000
FAR_AHEAD = 99_999_999_999_999

_serial = count(1)


class Rows:
    """Inserts rows through one connection of the control plane."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn

    def add(self, table: str, **columns: Any) -> Any:
        """Insert a row with what it needs to be legal, and return its key."""
        number = next(_serial)
        needed: dict[str, Any] = getattr(self, f"_{table}")(number, columns)
        inserted = self.conn.execute(insert(metadata.tables[table]), needed | columns)
        assert inserted.inserted_primary_key
        return inserted.inserted_primary_key[0]

    def get(self, table: str, row_id: int) -> dict[str, Any]:
        found = self.conn.execute(
            select(metadata.tables[table]).where(metadata.tables[table].c.id == row_id)
        )
        return dict(found.mappings().one())

    def now(self) -> int:
        """The database's clock."""
        return int(self.conn.execute(select(now_ms())).scalar_one())

    def _libraries(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"slug": f"l-{number}", "name": f"library {number}", "absolute_path": b"/nowhere"}

    def _jobs(self, _number: int, _given: dict[str, Any]) -> dict[str, Any]:
        # Of scans and hashes only one may be active; these may be as many as a test likes.
        return {"kind": "delete"}

    def _job_items(self, number: int, given: dict[str, Any]) -> dict[str, Any]:
        job = {} if "job_id" in given else {"job_id": self.add("jobs", status="running")}
        return {"item_key": f"item {number}", **job}

    def _events(self, _number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"job_id": self.add("jobs"), "type": "log"}

    def _scan_sessions(self, _number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"library_id": self.add("libraries"), "job_id": self.add("jobs"), "lease_epoch": 1}

    def _scan_entries(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        name = b"name %d" % number
        return {"session_id": self.add("scan_sessions"), "change": "seen", "rel_path": name}

    def _scan_batches(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        files = packs.pack([b"name %d" % number], [None], [1], [1], [1], [number])
        return {"session_id": self.add("scan_sessions"), "files": files}

    def _scan_errors(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"session_id": self.add("scan_sessions"), "rel_path": b"name %d" % number}

    def _video_frames(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"asset_id": self.add("assets"), "timestamp_ms": number, "is_keyframe": False}

    def _library_files(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        name = b"name %d" % number
        return {
            "library_id": self.add("libraries"),
            "rel_path": name,
            "size_bytes": 1,
            "mtime_ns": 1,
        }

    def _thumbnails(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {
            "file_id": self.add("library_files"),
            "file_version": "1",
            "group_key": f"group {number}",
            "media_type": "image",
            "format": "jpeg",
            "size_px": 320,
        }

    def _thumbnail_cleanup_jobs(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"group_key": f"cleaned {number}", "execute_after": LONG_AGO}

    def _wal_maintenance_jobs(self, _number: int, _given: dict[str, Any]) -> dict[str, Any]:
        # Of checkpoints only one may be open; these may be as many as a test likes.
        self.conn.execute(text("DROP INDEX IF EXISTS ix_wal_maintenance_jobs_single_open"))
        return {"requested_mode": "passive", "execute_after": LONG_AGO}

    def _assets(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        name = b"name %d" % number
        return {
            "library_id": self.add("libraries"),
            "rel_path": name,
            "type": "image",
            "mtime": 1.0,
            "size": 1,
        }

    def _schedules(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"schedule-{number}", "action": "sweep", "cron": "0 0 * * *"}

    def _worker_status(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        return {"worker_id": f"worker {number}"}

    def _tokens(self, number: int, _given: dict[str, Any]) -> dict[str, Any]:
        named = {"name": f"token {number}", "created_by": "test", "role": "viewer"}
        return named | {"token_hash": b"%032d" % number}

    def _audit_log(self, _number: int, _given: dict[str, Any]) -> dict[str, Any]:
        called = {"method": "JobService/CancelJob", "resource": "jobs/1", "code": "OK"}
        return called | {"caller": "test", "role": "viewer", "peer": "local"}
