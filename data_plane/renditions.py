"""Finds what was made of files in the cache, and streams it."""

import math
import os
import re
import shlex
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO

from sqlalchemy import String, bindparam, text

from data_plane.cache import AssetFile, asset_path, thumbnail_path
from data_plane.jail import Jail
from mediaplane.errors import FailedPrecondition, InvalidArgument, NotFound
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import PROCESSED, AssetStatus, ThumbnailFormat, ThumbnailStatus
from mediaplane.protocol.versions import version_of
from mediaplane.v1 import content_service_pb2 as pb

_BLOCK_BYTES = 256 << 10
_MAX_ENTRY_BYTES = 16 << 20
_MAX_DIRECTORY_BYTES = 1 << 20
# The end of an archive without a comment, and before it the locator of a second, larger end.
_ARCHIVE_END = struct.Struct("<4s16x4s8xI4xH")
# All that the standard library raises for one.
_BROKEN_ARCHIVE = (
    zipfile.BadZipFile,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
)
_ID = "([1-9][0-9]{0,17})"
_THUMBNAIL = re.compile(f"thumbnails/{_ID}")
_ASSET = re.compile(f"libraries/([a-z0-9-]{{1,63}})/assets/{_ID}")
_FRAME = re.compile(f"{_ASSET.pattern}/frames/(0|{_ID})")

_TENANT = bindparam("tenant", type_=String())
_THUMBNAIL_ROW = text(
    "SELECT t.id, t.status, t.format, t.file_version, t.error_message, t.bytes_size, t.group_key"
    " FROM thumbnails t"
    " JOIN library_files f ON f.id = t.file_id JOIN libraries l ON l.slug = f.library_id"
    " WHERE t.id = :id AND l.deleted_at IS NULL AND (:tenant IS NULL OR l.tenant_id = :tenant)"
).bindparams(_TENANT)
_ASSET_ROW = text(
    "SELECT a.id, a.type, a.status, a.version, a.size, a.mtime, a.error_message,"
    " f.size_bytes, f.mtime_ns FROM assets a JOIN libraries l ON l.slug = a.library_id"
    " JOIN library_files f ON f.library_id = a.library_id AND f.rel_path = a.rel_path"
    " WHERE a.id = :id AND a.library_id = :library AND l.deleted_at IS NULL"
    " AND (:tenant IS NULL OR l.tenant_id = :tenant)"
).bindparams(_TENANT)
_FRAME_ROW = text("SELECT 1 FROM video_frames WHERE asset_id = :id AND timestamp_ms = :time")

_Rendition = pb.ReadRenditionRequest.Rendition
_FILES: dict[int, tuple[AssetFile, str]] = {
    _Rendition.RENDITION_THUMBNAIL: (AssetFile.THUMBNAIL, "image/webp"),
    _Rendition.RENDITION_PROXY: (AssetFile.PROXY, "image/jpeg"),
    _Rendition.RENDITION_SPRITE: (AssetFile.SPRITE, "image/jpeg"),
    _Rendition.RENDITION_SPRITE_INDEX: (AssetFile.SPRITE_INDEX, "text/vtt"),
}


@dataclass(frozen=True)
class Found:
    """A file of the cache, or an entry of an archive there."""

    path: str
    version: str
    content_type: str
    # What to do should it be gone or damaged.
    remedy: str
    entry: str = ""
    # As large as it was made, where that is known.
    size_bytes: int | None = None


class Renditions:
    """What the cache of this worker holds."""

    def __init__(self, database: Database, state: bytes) -> None:
        self._database = database
        self._state = state

    def thumbnail(self, tenant_id: str | None, name: str) -> Found:
        """Return a requested thumbnail that is ready."""
        (row_id,) = _match(_THUMBNAIL, name, "thumbnails/123").groups()
        row = self._row(_THUMBNAIL_ROW, id=int(row_id), tenant=tenant_id)
        if row is None:
            raise NotFound("There is no such thumbnail; it may have been cleaned up.")
        if row.status != ThumbnailStatus.READY:
            why = f": {row.error_message}" if row.error_message else "."
            raise FailedPrecondition(f"The thumbnail is {row.status}, not ready{why}")
        path = thumbnail_path(row.id, ThumbnailFormat(row.format))
        clean = f"mediaplane thumbnail clean {shlex.quote(row.group_key)}"
        return Found(
            path,
            row.file_version,
            f"image/{row.format}",
            f"`{clean}` removes it with its group; then request it again.",
            size_bytes=row.bytes_size,
        )

    def of_asset(self, tenant_id: str | None, name: str, rendition: int) -> Found:
        """Return a rendition of an asset that is processed."""
        if rendition not in _FILES:
            raise InvalidArgument("rendition must be one that this server knows.")
        library, row_id = _match(_ASSET, name, "libraries/SLUG/assets/123").groups()
        row = self._asset(tenant_id, library, int(row_id))
        file, content_type = _FILES[rendition]
        if row.type != "video" and file in (AssetFile.SPRITE, AssetFile.SPRITE_INDEX):
            raise FailedPrecondition("Only videos have sprites; this is an image.")
        path = asset_path(row.id, file, row.version)
        return Found(path, row.version, content_type, _made_anew(row.id))

    def frame(self, tenant_id: str | None, name: str) -> Found:
        """Return a frame of a video that is processed."""
        example = "libraries/SLUG/assets/123/frames/4500"
        library, row_id, time_ms, _ = _match(_FRAME, name, example).groups()
        row = self._asset(tenant_id, library, int(row_id))
        if self._row(_FRAME_ROW, id=row.id, time=int(time_ms)) is None:
            raise NotFound("The video has no such frame; ListFrames lists those it has.")
        path = asset_path(row.id, AssetFile.FRAMES, row.version)
        return Found(path, row.version, "image/jpeg", _made_anew(row.id), f"{time_ms}.jpg")

    def stream(self, found: Found, is_wanted: Callable[[], bool]) -> Iterator[pb.ContentChunk]:
        """Yield the content in pieces, for as long as somebody wants them."""
        with self._open(found) as file:
            if not found.entry:
                size_bytes = _checked_size(file, found)
                yield from _pieces(file, size_bytes, found, is_wanted)
                return
            content = _read_entry(file, found)
            yield from _pieces(BytesIO(content), len(content), found, is_wanted)

    def _open(self, found: Found) -> BinaryIO:
        try:
            with Jail(self._state) as jail:
                return os.fdopen(jail.open_file(os.fsencode(found.path)), "rb")
        except OSError:
            raise FailedPrecondition(
                "It is not in the cache of this worker: another one has it, or it was swept. If it"
                f" was, {found.remedy}"
            ) from None

    def _asset(self, tenant_id: str | None, library: str, row_id: int) -> Any:
        row = self._row(_ASSET_ROW, id=row_id, library=library, tenant=tenant_id)
        if row is None:
            raise NotFound("There is no such asset; it may have been removed.")
        _check_is_processed(row)
        return row

    def _row(self, query: Any, **bound: Any) -> Any:
        with self._database.read() as conn:
            return conn.execute(query, bound).first()


def _match(pattern: re.Pattern[str], name: str, example: str) -> re.Match[str]:
    found = pattern.fullmatch(name)
    if found is None:
        raise InvalidArgument(f"name must be of the form {example}.")
    return found


def _check_is_processed(row: Any) -> None:
    """Refuse what shows an earlier state of the file, or nothing of it."""
    if row.status in (AssetStatus.FAILED, AssetStatus.POISONED):
        raise FailedPrecondition(
            f"The asset is {row.status}. {row.error_message or 'Its worker was lost.'} Mend or"
            " replace the file and scan its library, or have it tried again:"
            f" `mediaplane asset retry {row.id}`."
        )
    if row.status not in PROCESSED or row.version is None:
        raise FailedPrecondition(f"The asset is {row.status}; ask again once it is processed.")
    if not _is_of_present_state(row):
        raise FailedPrecondition(
            f"What was made of the asset shows another state of its file; {_made_anew(row.id)}"
        )


def _is_of_present_state(row: Any) -> bool:
    # The content of a file that was moved may have a new time of change: its asset knows that,
    # to the fraction of a second that a number has room for.
    is_same_time = math.isclose(row.mtime, row.mtime_ns / 1e9, rel_tol=0, abs_tol=1e-6)
    return row.version == version_of(row.size_bytes, row.mtime_ns) or (
        row.size == row.size_bytes and is_same_time
    )


def _made_anew(asset_id: int) -> str:
    return f"`mediaplane asset retry {asset_id}` has it made again."


def _checked_size(file: BinaryIO, found: Found) -> int:
    """Refuse a file that is not as it was made: a disk was full, say, or went down."""
    size_bytes = os.fstat(file.fileno()).st_size
    if size_bytes == 0 or found.size_bytes not in (None, size_bytes):
        is_now = f"of {size_bytes} bytes in place of {found.size_bytes}"
        raise FailedPrecondition(
            f"Its file in the cache is damaged: it is {is_now if size_bytes else 'empty'}."
            f" Have it made anew: {found.remedy}"
        )
    return size_bytes


def _read_entry(file: BinaryIO, found: Found) -> bytes:
    """Return a file of an archive, which a decoder has made that may have been taken over."""
    try:
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            entry = archive.getinfo(found.entry)
            # Decoders pack nothing: what is packed could be a bomb.
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > _MAX_ENTRY_BYTES:
                raise zipfile.BadZipFile
            return archive.read(entry)
    except _BROKEN_ARCHIVE:
        raise FailedPrecondition(
            f"The archive of the video's frames is broken; {found.remedy}"
        ) from None


def _check_directory(file: BinaryIO) -> None:
    """Refuse an archive of more entries than a video has frames, before they fill the memory."""
    file.seek(-_ARCHIVE_END.size, os.SEEK_END)
    end = file.read(_ARCHIVE_END.size)
    locator, signature, directory_bytes, comment_bytes = _ARCHIVE_END.unpack(end)
    # With a locator or a comment, another size than this one may hold.
    is_ours = locator != b"PK\6\7" and signature == b"PK\5\6" and not comment_bytes
    if not is_ours or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise zipfile.BadZipFile


def _pieces(
    file: Any, size_bytes: int, found: Found, is_wanted: Callable[[], bool]
) -> Iterator[pb.ContentChunk]:
    chunk = pb.ContentChunk(
        size_bytes=size_bytes, version_id=found.version, content_type=found.content_type
    )
    while is_wanted():
        chunk.data = file.read(_BLOCK_BYTES)
        if not chunk.data and not chunk.content_type:
            return
        yield chunk
        chunk = pb.ContentChunk()
