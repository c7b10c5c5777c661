"""Decides which thumbnails are made: one of each picture, and no more at a time than may wait."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from control_plane.policy.recollection import Recollection
from control_plane.store import thumbnails
from control_plane.store.thumbnails import Picture
from control_plane.store.unknown_thumbnails import DIALECT, Kind, add_unknown
from mediaplane.errors import FailedPrecondition, InvalidArgument, NotFound, Overloaded
from mediaplane.protocol.database import Database, Topic, changed
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import ThumbnailFormat

MAX_BATCH = 500
MAX_GROUP_KEY = 100
DEFAULT_SIZE_PX = 320
_MIN_SIZE_PX = 16
_MAX_SIZE_PX = 4096
_MAX_DELAY_MS = 10 * 365 * 86_400_000


class Wanted(NamedTuple):
    """A thumbnail that somebody asks for."""

    library: str
    file_id: int
    size_px: int = DEFAULT_SIZE_PX
    format: str = ThumbnailFormat.JPEG.value  # the plain text, which is hashed several times
    group_key: str = ""  # empty: the name of the file


# All but the file: most requests of a batch have it in common.
_kind = itemgetter(0, 2, 3, 4)


def request(
    database: Database,
    tenant_id: str | None,
    wanted: Sequence[Wanted],
    capacity: int,
    lately: Recollection[Picture],
) -> list[Row]:
    """Return a thumbnail for each that is wanted; those that are to be made wait for a worker."""
    kinds = dict.fromkeys(map(_kind, wanted))
    for _, size_px, _, group_key in kinds:
        _check(size_px, group_key)
    pictures = [one[1:4] for one in wanted]
    asked = dict(zip(pictures, wanted, strict=True))
    if len(kinds) > 1:
        _check_libraries(database, tenant_id, zip(pictures, wanted, strict=True), asked)
    found: dict[Picture, Row] = {}
    # Looked up and added by one statement, in two thirds of the time. What somebody has asked for
    # lately is mostly known, and that is found faster by looking alone.
    if len(kinds) == 1 and database.dialect == DIALECT and not lately.has_any(asked.keys()):
        found = _add_unknown(database, tenant_id, asked, Kind(*next(iter(kinds))), capacity)
    found = found or _look_and_admit(database, tenant_id, asked, capacity)
    lately.note(asked.keys())
    return [found[picture] for picture in pictures]


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


def _check_libraries(
    database: Database,
    tenant_id: str | None,
    named: Iterable[tuple[Picture, Wanted]],
    asked: Mapping[Picture, Wanted],
) -> None:
    """Refuse a file that is named in two libraries: it is in one at most."""
    others = {picture: one for picture, one in named if one.library != asked[picture].library}
    if others:
        with database.read() as conn:
            _look(conn, tenant_id, asked)
            _look(conn, tenant_id, others)


def _add_unknown(
    database: Database,
    tenant_id: str | None,
    asked: Mapping[Picture, Wanted],
    kind: Kind,
    capacity: int,
) -> dict[Picture, Row]:
    """Have all of it made if nobody has asked for any of it; if not, nothing."""
    try:
        with database.write(held=thumbnails.QUEUE, is_one_change=True) as conn:
            added = add_unknown(
                conn, tenant_id, [file_id for file_id, _, _ in asked], kind, capacity
            )
            if added:
                changed(conn, Topic.WORK)
            return added
    except IntegrityError:
        return {}  # a file was removed in this moment: who looks will see which


def _look_and_admit(
    database: Database, tenant_id: str | None, asked: Mapping[Picture, Wanted], capacity: int
) -> dict[Picture, Row]:
    with database.read() as conn:
        found = _look(conn, tenant_id, asked)
    missing = {picture: row for picture, row in found.items() if not _is_at_hand(row)}
    # Most pictures are asked for again and again: no need to wait for a turn to write.
    if missing:
        is_one_change = thumbnails.is_one_change(missing)
        try:
            with database.write(held=thumbnails.QUEUE, is_one_change=is_one_change) as conn:
                found |= _admit(conn, tenant_id, asked, missing, capacity)
                changed(conn, Topic.WORK)
        except IntegrityError:
            raise NotFound("A file was removed in this moment; ask again for the others.") from None
    return found


def _look(
    conn: Connection, tenant_id: str | None, asked: Mapping[Picture, Wanted]
) -> dict[Picture, Row]:
    found = thumbnails.look(conn, tenant_id, asked)
    return {picture: _usable(found.get(picture), one) for picture, one in asked.items()}


def _admit(
    conn: Connection,
    tenant_id: str | None,
    asked: Mapping[Picture, Wanted],
    missing: Mapping[Picture, Row],
    capacity: int,
) -> dict[Picture, Row]:
    """Have made what is not at hand, all of it or nothing."""
    due = [row["id"] for row in missing.values() if row["is_due"]]
    new = {
        picture: {**row, "group_key": asked[picture].group_key or _name(asked[picture])}
        for picture, row in missing.items()
        if row["id"] is None
    }
    waiting = thumbnails.requeue(conn, due, capacity) | thumbnails.add(conn, new, capacity)
    unmet = {picture: asked[picture] for picture in missing if picture not in waiting}
    if unmet:
        # Somebody else may have asked for the same in the meantime; else there was no room.
        waiting |= _look(conn, tenant_id, unmet)
    if not all(map(_is_at_hand, waiting.values())):
        raise Overloaded(
            f"No room for {len(unmet)} more: at most {capacity} thumbnails may wait"
            " (MEDIAPLANE_THUMBNAIL_CAPACITY). Ask again when some of them are made.",
            capacity=str(capacity),
        )
    return waiting


def _is_at_hand(row: Row) -> bool:
    return row["id"] is not None and not row["is_due"]


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


def _check(size_px: int, group_key: str) -> None:
    if not _MIN_SIZE_PX <= size_px <= _MAX_SIZE_PX:
        raise InvalidArgument(f"size_px is {size_px}; it must be {_MIN_SIZE_PX} to {_MAX_SIZE_PX}.")
    check_group_key(group_key)


def _name(wanted: Wanted) -> str:
    return f"libraries/{wanted.library}/files/{wanted.file_id}"
