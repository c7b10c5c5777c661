"""Duplicate groups: pages of them, and where their summary differs from the files."""

from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row, query_directly
from mediaplane.protocol.duplicates import COUNTED, GROUPABLE

# With a filter a call looks at this many groups with each query, and at so many in all.
LOOK_GROUPS = 1000
MAX_LOOKED_AT = 5 * LOOK_GROUPS

Key = tuple[str, bytes]


class Order(NamedTuple):
    """A way to list groups: the columns of an index, and the direction it is read in."""

    columns: tuple[str, ...]
    is_descending: bool


COPIES = Order(("rank_by_count", "rank_by_size", "hash_algorithm", "content_hash"), False)
RECLAIMABLE = Order(("reclaimable_bytes", "hash_algorithm", "content_hash"), True)


class Filter(NamedTuple):
    """What a group must have to be listed; empty means anything."""

    library_id: str = ""
    # The folder as rel_path begins with it, '/' included.
    folder: bytes = b""
    media_type: str = ""
    min_size_bytes: int = 0


def page(
    conn: Connection,
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: tuple[object, ...] | None,
) -> tuple[list[Row], Row | None]:
    """Return groups behind a position, and the group to go on behind if there may be more."""
    # Without a filter every group is wanted, so the first look decides.
    look = LOOK_GROUPS if any(wanted) else limit + 1
    found: list[Row] = []
    tail = None
    for _ in range(0, MAX_LOOKED_AT, look):
        rows = _look(conn, order, wanted, limit=look, after=after)
        found += [row for row in rows if row["is_wanted"]]
        if len(found) > limit:
            return found[:limit], found[limit - 1]
        if len(rows) < look:
            return found, None
        tail = rows[-1]
        after = tuple(tail[column] for column in order.columns)
    return found, tail


def _look(
    conn: Connection,
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: tuple[object, ...] | None,
) -> list[Row]:
    """Return the next groups, each with whether it is wanted."""
    columns, marks = ", ".join(order.columns), ", ".join(f":{name}" for name in order.columns)
    # One comparison of the whole key, one direction throughout: an OR chain is 25 times slower.
    behind = f"WHERE ({columns}) {'<' if order.is_descending else '>'} ({marks})" if after else ""
    direction = "DESC" if order.is_descending else "ASC"
    sequence = ", ".join(f"{column} {direction}" for column in order.columns)
    query = (
        f"SELECT g.*, {_is_wanted(wanted)} AS is_wanted FROM duplicate_groups g {behind}"
        f" ORDER BY {sequence} LIMIT :limit"
    )
    bound: dict[str, object] = {
        **wanted._asdict(),
        **dict(zip(order.columns, after or (), strict=bool(after))),
        "folder_bytes": len(wanted.folder),
        "limit": limit,
    }
    return query_directly(conn, query, bound)


def _is_wanted(wanted: Filter) -> str:
    """Return the condition of a filter, with the parts that are used."""
    conditions = ["size_bytes >= :min_size_bytes"] if wanted.min_size_bytes else []
    of_file = [
        condition
        for value, condition in (
            (wanted.library_id, "library_id = :library_id"),
            (wanted.folder, "substr(rel_path, 1, :folder_bytes) = :folder"),
            (wanted.media_type, "media_type = :media_type"),
        )
        if value
    ]
    if of_file:
        # Not EXISTS: PostgreSQL would read all files into a hash table to answer it.
        conditions.append(
            f"(SELECT 1 FROM library_files WHERE {GROUPABLE}"
            " AND hash_algorithm = g.hash_algorithm AND content_hash = g.content_hash"
            f" AND {' AND '.join(of_file)} LIMIT 1) IS NOT NULL"
        )
    return f"({' AND '.join(conditions)})" if conditions else "true"


_SPAN = "(hash_algorithm, content_hash) > (:after_algorithm, :after_hash)"
_UNTIL = " AND (hash_algorithm, content_hash) <= (:until_algorithm, :until_hash)"

_HELD = (
    "SELECT hash_algorithm, content_hash, file_count, size_bytes, total_size_bytes,"
    " reclaimable_bytes FROM duplicate_groups WHERE {span}"
)


class Span(NamedTuple):
    """The hashes behind one key and up to another, or to the end."""

    after: Key
    until: Key | None


def span(conn: Connection, after: Key, files: int) -> Span:
    """Return the hashes of about this many files behind a key."""
    query = prepared(
        conn,
        f"SELECT hash_algorithm, content_hash FROM library_files WHERE {GROUPABLE} AND {_SPAN}"
        " ORDER BY hash_algorithm, content_hash LIMIT 1 OFFSET :files",
    )
    bound = {"after_algorithm": after[0], "after_hash": after[1], "files": files}
    row = conn.execute(query, bound).first()
    return Span(after, (row[0], bytes(row[1])) if row else None)


def count(conn: Connection, within: Span) -> int:
    """Count the groups of a span by the files themselves."""
    words, bound = _bounds(within)
    query = prepared(conn, f"SELECT count(*) FROM ({COUNTED.format(these=words)}) counted")
    return int(conn.execute(query, bound).scalar_one())


def wrong(conn: Connection, within: Span) -> list[Key]:
    """Return the hashes whose row of the summary is lacking, superfluous or has wrong figures."""
    words, bound = _bounds(within)
    counted, held = COUNTED.format(these=words), _HELD.format(span=words)
    # One statement, so that files and summary are those of the same moment.
    query = prepared(
        conn,
        f"SELECT hash_algorithm, content_hash FROM ({counted} EXCEPT {held}) lacking"
        f" UNION SELECT hash_algorithm, content_hash FROM ({held} EXCEPT {counted}) superfluous",
    )
    return [(row[0], bytes(row[1])) for row in conn.execute(query, bound)]


def _bounds(within: Span) -> tuple[str, dict[str, object]]:
    bound: dict[str, object] = {
        "after_algorithm": within.after[0],
        "after_hash": within.after[1],
    }
    if within.until is None:
        return _SPAN, bound
    until = {"until_algorithm": within.until[0], "until_hash": within.until[1]}
    return _SPAN + _UNTIL, bound | until
