"""The SQL of media work: finds what waits, reads its task, and writes what came of it."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, String, bindparam, text

from data_plane.decoders.messages import FrameMeasure
from data_plane.executor import Cancelled, Fail, Hashed, HashResult
from data_plane.executors.cleanup import CleanupTask, Removed
from data_plane.executors.extract import Extraction, ExtractTask, Original
from data_plane.executors.thumbnail import Thumbnail, ThumbnailTask
from data_plane.hashing import record_hashes
from data_plane.output import FRAMES_MADE, THUMBNAILS_MADE
from data_plane.roots import Root
from mediaplane.protocol import gate
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database, count
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import THUMBNAIL_CLEANUP_JOBS
from mediaplane.protocol.values import DEGRADED, HashAlgorithm, MediaType, ThumbnailFormat
from mediaplane.protocol.write_paths import DELETE_THUMBNAILS, RECORD_FRAMES

_BATCH = 1000
_WAS_NOT_THERE = "It was not there at the last scan."
_DEGRADED_MESSAGE = "Part of the file could not be decoded; the picture shows the rest."

# Of a paused library nothing is read, not even for somebody who waits. The type is a range, so that
# only the index of claims has the order of claims: of one type PostgreSQL would rather go through
# the ids of all thumbnails, past those that are made.
CLAIMABLE_THUMBNAIL = (
    "media_type BETWEEN :type AND :type AND EXISTS (SELECT 1 FROM library_files f JOIN libraries l"
    " ON l.slug = f.library_id WHERE f.id = thumbnails.file_id AND l.is_active"
    " AND l.deleted_at IS NULL)"
)
_WAITING_THUMBNAIL = text(
    f"SELECT 1 FROM thumbnails WHERE status = 'pending' AND {CLAIMABLE_THUMBNAIL} LIMIT 1"
)
_WAITING_CLEANUP = (
    "SELECT 1 FROM thumbnail_cleanup_jobs WHERE status = 'pending' AND execute_after <= {now}"
    f" AND {THUMBNAIL_CLEANUP_JOBS.step('claim').when} LIMIT 1"
)
# One look for each library, however many assets wait in it.
_WAITING_ASSETS = text(
    "SELECT l.slug, l.absolute_path, l.root_device, l.root_inode FROM libraries l"
    " WHERE l.is_active AND l.deleted_at IS NULL AND EXISTS (SELECT 1 FROM assets a"
    "  WHERE a.status = 'pending' AND a.type = :type AND a.library_id = l.slug)"
    " ORDER BY (SELECT min(a.id) FROM assets a"
    "  WHERE a.status = 'pending' AND a.type = :type AND a.library_id = l.slug)"
)

_ORIGINAL = (
    "SELECT f.id, f.library_id, l.absolute_path, f.rel_path, f.media_type, f.size_bytes,"
    " f.mtime_ns, l.root_device, l.root_inode, f.needs_hash, l.hash_algorithm, l.sampling_limit,"
    " l.sampling_policy, f.is_missing, l.is_active AND l.deleted_at IS NULL AS is_in_use"
    " FROM library_files f JOIN libraries l ON l.slug = f.library_id WHERE "
)
# By the name that it has now: a scan may have followed its file since it was claimed.
_OF_ASSET = text(
    _ORIGINAL + "f.library_id = :library"
    " AND f.rel_path = (SELECT a.rel_path FROM assets a WHERE a.id = :asset)"
)
_OF_THUMBNAIL = text(_ORIGINAL + "f.id = :file AND l.deleted_at IS NULL")
_PROCESSED = text(
    "SELECT id, is_degraded FROM assets"
    " WHERE library_id = :library AND rel_path = :path AND version = :version"
)
_NOW_THERE = text("SELECT size_bytes, mtime_ns, rel_path FROM library_files WHERE id = :file")
_OLD_FRAMES = text("DELETE FROM video_frames WHERE asset_id = :asset")
_FINISHED = (
    "SELECT t.id FROM thumbnails t WHERE t.group_key = :group AND t.status IN ('ready', 'failed')"
    " AND (:tenant IS NULL OR :tenant = (SELECT l.tenant_id FROM library_files f"
    "  JOIN libraries l ON l.slug = f.library_id WHERE f.id = t.file_id))"
)
_FORGET = text(
    f"DELETE FROM thumbnails WHERE id IN ({_FINISHED} LIMIT :limit)"
    # Once more, for one that was asked for again while this waited for its row.
    " AND status IN ('ready', 'failed') RETURNING id, format"
).bindparams(bindparam("tenant", type_=String()))
_ROOTS = text(
    "SELECT slug, absolute_path, root_device, root_inode FROM libraries"
    " WHERE is_active AND deleted_at IS NULL ORDER BY slug LIMIT :limit"
)
_PAUSED = text("SELECT slug FROM libraries WHERE NOT is_active OR deleted_at IS NOT NULL")


def thumbnail_waits(database: Database, media_type: MediaType) -> bool:
    """Tell whether somebody waits for a thumbnail."""
    with database.read() as conn:
        return conn.execute(_WAITING_THUMBNAIL, {"type": media_type}).first() is not None


def cleanup_waits(database: Database) -> bool:
    """Tell whether a clean-up can be done now."""
    with database.read() as conn:
        waiting = text(_WAITING_CLEANUP.format(now=NOW_SQL[database.dialect]))
        return conn.execute(waiting).first() is not None


def roots_with_assets(database: Database, media_type: MediaType) -> list[tuple[str, Root]]:
    """Return slug and root of the libraries whose assets wait, those that wait longest first."""
    with database.read() as conn:
        found = conn.execute(_WAITING_ASSETS, {"type": media_type})
        return [(slug, Root(bytes(path), *identity)) for slug, path, *identity in found]


def library_roots(database: Database, limit: int) -> dict[str, Root]:
    """Return the roots of libraries that are in use, by slug."""
    with database.read() as conn:
        found = conn.execute(_ROOTS, {"limit": limit})
        return {slug: Root(bytes(path), *identity) for slug, path, *identity in found}


def paused_libraries(conn: Connection) -> set[str]:
    """Return the libraries of which nothing is to be read now."""
    return set(conn.execute(_PAUSED).scalars())


def extract_task(database: Database, asset: Row) -> ExtractTask:
    """Read what is to be made of a claimed asset."""
    bound = {"library": asset["library_id"], "asset": asset["id"]}
    with database.read() as conn:
        row = conn.execute(_OF_ASSET, bound).mappings().first()
    # A purge takes the files before the assets, and a library may come back in between.
    if row is None:
        raise Fail("not_found", _WAS_NOT_THERE)
    _check_is_in_use(row)
    if row["is_missing"]:
        raise Fail("not_found", _WAS_NOT_THERE)
    policy = row["sampling_policy"] or {}
    policy = json.loads(policy) if isinstance(policy, str) else policy
    return ExtractTask(
        asset["id"],
        _original(row),
        HashAlgorithm(row["hash_algorithm"]) if row["needs_hash"] else None,
        row["sampling_limit"],
        FrameMeasure(policy.get("measure", FrameMeasure.MSE)),
    )


def thumbnail_task(database: Database, thumbnail: Row) -> ThumbnailTask:
    """Read what a claimed thumbnail is to show."""
    with database.read() as conn:
        row = conn.execute(_OF_THUMBNAIL, {"file": thumbnail["file_id"]}).mappings().first()
        if row is None or row["is_missing"]:
            raise Fail("not_found", "The file is not there any more.")
        _check_is_in_use(row)
        original = _original(row)
        bound = {
            "library": original.library,
            "path": original.rel_path,
            "version": original.version,
        }
        asset = conn.execute(_PROCESSED, bound).first()
    return ThumbnailTask(
        thumbnail["id"],
        original,
        thumbnail["file_version"],
        thumbnail["size_px"],
        ThumbnailFormat(thumbnail["format"]),
        *((asset.id, bool(asset.is_degraded)) if asset else ()),
    )


def cleanup_task(database: Database, cleanup: Row) -> CleanupTask:
    """Return the clean-up of a claimed row's group, as far as it is of the row's tenant."""
    bound = {
        "tenant": cleanup["tenant_id"],
        "group": cleanup["group_key"],
        "limit": _BATCH,
    }

    def forget() -> Iterator[Removed]:
        while True:
            with database.write(DELETE_THUMBNAILS) as conn:
                removed = conn.execute(_FORGET, bound).all()
            if not removed:
                return
            yield [(row.id, ThumbnailFormat(row.format)) for row in removed]

    return CleanupTask(forget)


def is_outdated(conn: Connection, original: Original, *, is_made: bool) -> bool:
    """Tell whether a scan knows the file in another state by now.

    Or by another name, where nothing was made of what has the old one.
    """
    row = conn.execute(_NOW_THERE, {"file": original.file_id}).first()
    if row is None:
        return False
    is_renamed = bytes(row.rel_path) != original.rel_path
    state = (row.size_bytes, row.mtime_ns)
    return state != (original.size_bytes, original.mtime_ns) or (is_renamed and not is_made)


def extraction_columns(result: Extraction) -> dict[str, Any]:
    """Return what an asset's row says of what was made."""
    done = result.done
    return {
        "version": result.task.original.version,
        "width": done.width,
        "height": done.height,
        "duration_ms": done.duration_ms,
        "poster_ms": done.poster_ms,
        "is_degraded": done.is_degraded,
    }


def record_extraction(conn: Connection, result: Extraction) -> None:
    """Write the frames of a video, and the hash if it was found on the way."""
    asset_id = result.task.asset_id
    conn.execute(_OLD_FRAMES, {"asset": asset_id})
    gate.add(
        conn,
        RECORD_FRAMES,
        [
            {
                "asset_id": asset_id,
                "timestamp_ms": frame.timestamp_ms,
                "is_keyframe": frame.is_keyframe,
            }
            for frame in result.done.frames
        ],
    )
    count(conn, THUMBNAILS_MADE)
    count(conn, FRAMES_MADE, amount=len(result.done.frames))
    if result.hashed and result.done.digest:
        record_hashes(conn, HashResult(hashed=[Hashed(result.hashed, result.done.digest)]))


def record_thumbnail(conn: Connection, _made: Thumbnail) -> None:
    """Count a thumbnail; its row says already what there is to say."""
    count(conn, THUMBNAILS_MADE)


def thumbnail_columns(made: Thumbnail) -> dict[str, Any]:
    """Return what a thumbnail's row says of the picture."""
    picture = made.picture
    return {
        "width": picture.width,
        "height": picture.height,
        "bytes_size": picture.bytes_size,
        "error_code": DEGRADED if made.is_degraded else None,
        "error_message": _DEGRADED_MESSAGE if made.is_degraded else None,
    }


def _check_is_in_use(row: Any) -> None:
    """Give up what was claimed before its library was paused, which no heartbeat may have seen."""
    if not row["is_in_use"]:
        raise Cancelled


def _original(row: Any) -> Original:
    return Original(
        row["id"],
        row["library_id"],
        Root(bytes(row["absolute_path"]), row["root_device"], row["root_inode"]),
        bytes(row["rel_path"]),
        MediaType(row["media_type"]),
        row["size_bytes"],
        row["mtime_ns"],
    )
