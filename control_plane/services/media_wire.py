"""Rows of pictures and videos, and of what is made of them, to messages."""

from typing import Any

from control_plane.services import names
from control_plane.services.wire import set_time, time, to_enum
from mediaplane.paths import display
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import (
    DEGRADED,
    PROCESSED,
    MediaType,
    ThumbnailFormat,
    ThumbnailStatus,
)
from mediaplane.v1 import asset_service_pb2 as asset_pb
from mediaplane.v1 import thumbnail_service_pb2 as thumbnail_pb


def asset(row: Row) -> asset_pb.Asset:
    """Return an asset, and what is known of its file as it is now."""
    made = _made(row) if row["status"] in PROCESSED else {}
    return asset_pb.Asset(
        name=f"libraries/{row['library_id']}/assets/{row['id']}",
        rel_path=row["rel_path"],
        rel_path_display=display(row["rel_path"]),
        type=to_enum(asset_pb.Asset.Type, row["type"]),
        state=to_enum(asset_pb.Asset.State, row["status"]),
        size_bytes=row["size"],
        modify_time_seconds=row["mtime"],
        retry_count=row["retry_count"],
        create_time=time(row["created_at"]),
        update_time=time(row["updated_at"]),
        **made,
        **_error(row),
    )


def _made(row: Row) -> dict[str, Any]:
    return {
        "version_id": row["version"] or "",
        "width": row["width"] or 0,
        "height": row["height"] or 0,
        "duration_ms": row["duration_ms"] or 0,
        "poster_timestamp_ms": row["poster_ms"] or 0,
        "degraded": row["is_degraded"],
    }


def frame(row: Row, parent: str) -> asset_pb.Frame:
    """Return a frame of a video."""
    return asset_pb.Frame(
        name=f"{parent}/frames/{row['timestamp_ms']}",
        timestamp_ms=row["timestamp_ms"],
        keyframe=row["is_keyframe"],
    )


def thumbnail(row: Row, library: str) -> thumbnail_pb.Thumbnail:
    """Return a thumbnail of a file in a library."""
    message = thumbnail_pb.Thumbnail()
    fill_thumbnail(message, row, library)
    return message


# Plain texts, as they are stored: hundreds of thumbnails are asked for in one call.
_TYPES = {kind.value: to_enum(asset_pb.Asset.Type, kind) for kind in MediaType}
_FORMATS = {one.value: to_enum(thumbnail_pb.Thumbnail.Format, one) for one in ThumbnailFormat}
_STATES = {one.value: to_enum(thumbnail_pb.Thumbnail.State, one) for one in ThumbnailStatus}
_READY, _FAILED = ThumbnailStatus.READY.value, ThumbnailStatus.FAILED.value


def fill_thumbnail(message: thumbnail_pb.Thumbnail, row: Row, library: str) -> None:
    """Write a thumbnail into an empty message, which takes half as long as to make one of it."""
    status = row["status"]
    message.name = f"thumbnails/{row['id']}"
    message.file = names.file_name(library, row["file_id"])
    message.file_version = row["file_version"]
    message.group_key = row["group_key"]
    message.media_type = _TYPES[row["media_type"]]
    message.format = _FORMATS[row["format"]]
    message.size_px = row["size_px"]
    message.state = _STATES[status]
    set_time(message.create_time, row["created_at"])
    if row["error_count"]:
        message.error_count = row["error_count"]
    if status == _READY:
        message.width = row["width"] or 0
        message.height = row["height"] or 0
        message.size_bytes = row["bytes_size"] or 0
        message.degraded = row["error_code"] == DEGRADED
        set_time(message.end_time, row["finished_at"])
    elif status == _FAILED:
        message.error_code = row["error_code"] or ""
        message.error_message = row["error_message"] or ""
        set_time(message.retry_time, row["retry_after"])
        set_time(message.end_time, row["finished_at"])


def cleanup(row: Row) -> thumbnail_pb.ThumbnailCleanup:
    """Return a clean-up."""
    return thumbnail_pb.ThumbnailCleanup(
        name=f"thumbnailCleanups/{row['id']}",
        group_key=row["group_key"],
        state=to_enum(thumbnail_pb.ThumbnailCleanup.State, row["status"]),
        execute_time=time(row["execute_after"]),
        create_time=time(row["created_at"]),
        end_time=time(row["finished_at"]),
        **_error(row),
    )


def _error(row: Row) -> dict[str, Any]:
    return {"error_code": row["error_code"] or "", "error_message": row["error_message"] or ""}
