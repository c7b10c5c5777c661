"""Two tenants who have one of everything, by names that tell whose it is."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from mediaplane.protocol.database import Database
from tests.support.files import add_files, add_library, content, summarise_all
from tests.support.rows import FAR_AHEAD, Rows

# Both use it, and neither may touch the other's pictures by it.
GROUP_KEY = "wall"
SHARED_CONTENT = content(1)

_LIBRARIES = "(SELECT slug FROM libraries WHERE tenant_id = :tenant)"
_JOBS = "(SELECT id FROM jobs WHERE tenant_id = :tenant)"
_OF_SESSION = f"session_id IN (SELECT id FROM scan_sessions WHERE library_id IN {_LIBRARIES})"
# Which rows of each table are a tenant's.
OWNED = {
    **dict.fromkeys(
        ("libraries", "jobs", "schedules", "duplicate_groups", "thumbnail_cleanup_jobs", "tokens",
         "audit_log"),
        "tenant_id = :tenant",
    ),
    **dict.fromkeys(("job_items", "events"), f"job_id IN {_JOBS}"),
    **dict.fromkeys(("library_files", "assets", "scan_sessions"), f"library_id IN {_LIBRARIES}"),
    **dict.fromkeys(("scan_entries", "scan_batches", "scan_errors"), _OF_SESSION),
    "thumbnails": f"file_id IN (SELECT id FROM library_files WHERE library_id IN {_LIBRARIES})",
    "video_frames": f"asset_id IN (SELECT id FROM assets WHERE library_id IN {_LIBRARIES})",
}  # fmt: skip
# These are the installation's.
UNOWNED = {"ai_models", "io_rate_limits", "wal_maintenance_jobs", "worker_status"}


@dataclass(frozen=True)
class Tenant:
    """The names of what a tenant has."""

    name: str
    root: Path
    library: str
    trashed: str
    ended_job: str
    waiting_job: str
    failed_job: str
    file: str
    asset: str
    frame: str
    thumbnail: str
    cleanup: str
    schedule: str
    token: str


def nobody(root: Path) -> Tenant:
    """Names of the same form that nothing has."""
    return Tenant(
        "nobody", root, "libraries/nobody", "libraries/nobody-trash", "jobs/900001", "jobs/900002",
        "jobs/900003", "libraries/nobody/files/900001", "libraries/nobody/assets/900001",
        "libraries/nobody/assets/900001/frames/40", "thumbnails/900001",
        "thumbnailCleanups/900001", "schedules/nobody-nightly", "tokens/900001",
    )  # fmt: skip


def settle(database: Database, name: str, directory: Path) -> Tenant:
    """Give a tenant one of everything."""
    root = directory / name
    root.mkdir()
    paths = [f"{name} {number}.jpg".encode() for number in range(3)]
    for path in paths:
        Path(os.fsdecode(os.path.join(bytes(root), path))).write_bytes(name.encode() * 10)
    with database.write() as conn:
        rows = Rows(conn)
        owned = {"tenant_id": name}
        add_library(conn, name, absolute_path=bytes(root), **owned)
        add_library(
            conn, f"{name}-trash", absolute_path=bytes(root) + b"-trash", deleted_at=1, **owned
        )
        files = add_files(conn, name, [_file(root, path) for path in paths])
        summarise_all(conn)
        jobs = _add_jobs(rows, name)
        asset, thumbnail = _add_media(rows, name, paths[0], files[0])
        cleanup = rows.add(
            "thumbnail_cleanup_jobs", group_key=GROUP_KEY, execute_after=FAR_AHEAD, **owned
        )
        rows.add("schedules", name=f"{name}-nightly", action="rescan", library_id=name, **owned)
        token = rows.add("tokens", name=f"{name} token", **owned)
        rows.add("audit_log", caller=f"{name} caller", resource=f"libraries/{name}", **owned)
    ended, waiting, failed = jobs
    return Tenant(
        name, root, f"libraries/{name}", f"libraries/{name}-trash", f"jobs/{ended}",
        f"jobs/{waiting}", f"jobs/{failed}", f"libraries/{name}/files/{files[0]}",
        f"libraries/{name}/assets/{asset}", f"libraries/{name}/assets/{asset}/frames/40",
        f"thumbnails/{thumbnail}", f"thumbnailCleanups/{cleanup}", f"schedules/{name}-nightly",
        f"tokens/{token}",
    )  # fmt: skip


def dump(database: Database, tenant: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of a tenant, by table."""
    with database.read() as conn:
        return {table: _rows(conn, table, tenant) for table in OWNED}


def _rows(conn: Connection, table: str, tenant: str) -> list[dict[str, Any]]:
    found = conn.execute(text(f"SELECT * FROM {table} WHERE {OWNED[table]}"), {"tenant": tenant})
    rows = [dict(row) for row in found.mappings()]
    if table == "duplicate_groups":
        # Counted anew for a content whoever has it; the figures are what must stay.
        rows = [{**row, "updated_at": None} for row in rows]
    return sorted(rows, key=repr)


def _file(root: Path, path: bytes) -> dict[str, Any]:
    info = os.stat(os.path.join(bytes(root), path))
    told = {"error_code": "io_error", "error_message": f"of {root.name}"}
    known = {"rel_path": path, "size_bytes": info.st_size, "mtime_ns": info.st_mtime_ns}
    return known | {"media_type": "image"} | SHARED_CONTENT | told


def _add_jobs(rows: Rows, name: str) -> tuple[int, int, int]:
    of_library = {"tenant_id": name, "library_id": name, "payload": {"library": name}}
    ended = rows.add("jobs", kind="scan", status="completed", finished_at=1, **of_library)
    waiting = rows.add("jobs", kind="verify", status="pending", **of_library)
    failed = rows.add("jobs", kind="verify", status="failed", finished_at=1, **of_library,
                      error_message=f"of {name}")  # fmt: skip
    rows.add("job_items", job_id=ended, item_key=name, message=f"of {name}", status="failed")
    rows.add("events", job_id=ended, payload={"library": name})
    session = rows.add("scan_sessions", library_id=name, job_id=ended, status="succeeded")
    rows.add("scan_errors", session_id=session, rel_path=f"{name} broken".encode())
    return ended, waiting, failed


def _add_media(rows: Rows, name: str, path: bytes, file_id: int) -> tuple[int, int]:
    asset = rows.add("assets", library_id=name, rel_path=path, type="video", status="failed",
                     version="v1", error_message=f"of {name}")  # fmt: skip
    rows.add("video_frames", asset_id=asset, timestamp_ms=40, is_keyframe=True)
    made = {"status": "ready", "width": 1, "height": 1, "bytes_size": 1, "finished_at": 1}
    thumbnail = rows.add("thumbnails", file_id=file_id, group_key=GROUP_KEY, **made)
    return asset, thumbnail
