"""Decides which thumbnails are made: one of each picture, and no more at a time than may wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from control_plane.store import thumbnails
from control_plane.store.thumbnails import Picture
from mediaplane.errors import FailedPrecondition, InvalidArgument, NotFound, Overloaded
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import ThumbnailFormat
from mediaplane.protocol.versions import version_of

MAX_BATCH = 500
MAX_GROUP_KEY = 100
DEFAULT_SIZE_PX = 320
_MIN_SIZE_PX = 16
_MAX_SIZE_PX = 4096
_MAX_DELAY_MS = 10 * 365 * 86_400_000


@dataclass(frozen=True)
class Wanted:
    """A thumbnail that somebody asks for."""

    library: str
    file_id: int
    size_px: int = 0  # 0: as usual
    format: ThumbnailFormat = ThumbnailFormat.JPEG
    group_key: str = ""  # empty: the name of the file


class _Asked(NamedTuple):
    """What was asked for, and how much of it there is."""

    pictures: list[Picture]
    new: dict[Picture, dict[str, str]]  # with what else to store of each
    known: dict[Picture, Row]


def request(
    database: Database, tenant_id: str | None, wanted: Sequence[Wanted], capacity: int
) -> list[Row]:
    """Return a thumbnail for each that is wanted; those that are to be made wait for a worker."""
    for one in wanted:
        _check(one)
    with database.read() as conn:
        asked = _look(conn, tenant_id, wanted)
    due = [row["id"] for row in asked.known.values() if row["is_due"]]
    # Most pictures are asked for again and again: no need to wait for a turn to write.
    if not asked.new and not due:
        return [asked.known[one] for one in asked.pictures]
    try:
        with database.write() as conn:
            found = _admit(conn, asked, due, capacity)
    except IntegrityError:
        raise NotFound("A file was removed in this moment; ask again for the others.") from None
    return [found[one] for one in asked.pictures]


def get(conn: Connection, tenant_id: str | None, thumbnail_id: int) -> Row:
    """Return a thumbnail."""
    found = thumbnails.get(conn, tenant_id, thumbnail_id)
    if found is None:
        raise NotFound(
            f"There is no thumbnail {thumbnail_id}; it may have been cleaned up. Request it anew."
        )
    return found


def schedule_cleanup(conn: Connection, tenant_id: str | None, group_key: str, delay_ms: int) -> Row:
    """Have a group's thumbnails removed after a while; without a tenant, those of all."""
    if not group_key:
        raise InvalidArgument("group_key is missing; name the group to clean up.")
    check_group_key(group_key)
    if not 0 <= delay_ms <= _MAX_DELAY_MS:
        raise InvalidArgument(f"delay is {delay_ms / 1000:g} s; it must be 0 s to ten years.")
    return thumbnails.schedule_cleanup(conn, tenant_id, group_key, delay_ms)


def get_cleanup(conn: Connection, tenant_id: str | None, cleanup_id: int) -> Row:
    """Return a clean-up."""
    found = thumbnails.cleanup(conn, tenant_id, cleanup_id)
    if found is None:
        raise NotFound(f"There is no clean-up {cleanup_id}.")
    return found


def check_group_key(group_key: str) -> None:
    """Refuse a key that cannot be stored or shown."""
    if len(group_key) > MAX_GROUP_KEY or not group_key.isprintable():
        raise InvalidArgument(f"A group_key has up to {MAX_GROUP_KEY} printable characters.")


def _look(conn: Connection, tenant_id: str | None, wanted: Sequence[Wanted]) -> _Asked:
    files = thumbnails.files(conn, tenant_id, {one.file_id for one in wanted})
    stored = {}
    pictures = []
    for one in wanted:
        file = _usable(files.get(one.file_id), one)
        version = version_of(file["size_bytes"], file["mtime_ns"])
        picture = Picture(one.file_id, version, one.size_px or DEFAULT_SIZE_PX, one.format)
        pictures.append(picture)
        group_key = one.group_key or _name(one)
        stored[picture] = {"group_key": group_key, "media_type": file["media_type"]}
    known = thumbnails.find(conn, stored)
    new = {picture: stored[picture] for picture in stored if picture not in known}
    return _Asked(pictures, new, known)


def _admit(
    conn: Connection, asked: _Asked, due: Sequence[int], capacity: int
) -> dict[Picture, Row]:
    thumbnails.lock_queue(conn)
    found = asked.known | thumbnails.requeue(conn, due, capacity)
    found |= thumbnails.add(conn, asked.new, capacity)
    unmet = [one for one in {*asked.pictures} if one not in found or found[one]["is_due"]]
    if unmet:
        # Somebody else may have asked for the same in the meantime; else there was no room.
        found |= thumbnails.find(conn, unmet)
    if any(one not in found or found[one]["is_due"] for one in unmet):
        raise Overloaded(
            f"No room for {len(unmet)} more: at most {capacity} thumbnails may wait"
            " (MEDIAPLANE_THUMBNAIL_CAPACITY). Ask again when some of them are made.",
            capacity=str(capacity),
        )
    return found


def _usable(file: Row | None, wanted: Wanted) -> Row:
    if file is None or file["library_id"] != wanted.library:
        raise NotFound(
            f"There is no file {_name(wanted)}; it may have been removed. Scan its library again."
        )
    if file["media_type"] is None:
        raise FailedPrecondition(
            f"File {_name(wanted)} is neither a picture nor a video, so it has no thumbnails."
        )
    return file


def _check(wanted: Wanted) -> None:
    if wanted.size_px and not _MIN_SIZE_PX <= wanted.size_px <= _MAX_SIZE_PX:
        raise InvalidArgument(
            f"size_px is {wanted.size_px}; it must be {_MIN_SIZE_PX} to {_MAX_SIZE_PX}."
        )
    check_group_key(wanted.group_key)


def _name(wanted: Wanted) -> str:
    return f"libraries/{wanted.library}/files/{wanted.file_id}"
