"""Duplicate groups: pages of them, and where their summary differs from the files."""

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.store import tenants
from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row, query_directly
from mediaplane.protocol.duplicates import COUNTED, GROUPABLE, GROUPABLE_OF_TENANT, IS_BEHIND

# With a filter a call looks at this many groups with each query, and at so many in all.
LOOK_GROUPS = 1000
MAX_LOOKED_AT = 5 * LOOK_GROUPS

Key = tuple[str, bytes]
_FIGURES = ("file_count", "size_bytes", "total_size_bytes", "reclaimable_bytes")


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


class Position(NamedTuple):
    """A place behind a group: where it stands in its order, and whose it is."""

    key: tuple[object, ...]
    tenant_id: str


def page(
    conn: Connection,
    tenant_id: str | None,
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: Position | None,
) -> tuple[list[Row], Row | None]:
    """Return groups behind a position, and the group to go on behind if there may be more.

    Without a tenant, those of all: where several have one content, in the order of the tenants.
    """
    # Without a filter every group is wanted, so the first look decides.
    look = LOOK_GROUPS if any(wanted) else limit + 1
    owners = tenants.owning(conn, "duplicate_groups") if tenant_id is None else [tenant_id]
    found: list[tuple[Row, Row]] = []  # each as the summary has it, and as it is shown
    tail = None
    for _ in range(0, MAX_LOOKED_AT, look):
        rows = _look(conn, owners, order, wanted, limit=look, after=after)
        shown = _counted(conn, rows) if rows and rows[0]["is_behind"] else rows
        found += [
            (row, one) for row, one in zip(rows, shown, strict=True) if row["is_wanted"] and one
        ]
        if len(found) > limit:
            return [one for _, one in found[:limit]], found[limit - 1][0]
        if len(rows) < look:
            return [one for _, one in found], None
        tail = rows[-1]
        after = Position(tuple(tail[column] for column in order.columns), tail["tenant_id"])
    return [one for _, one in found], tail


def _counted(conn: Connection, rows: Sequence[Row]) -> list[Row | None]:
    """Return groups with the figures that their files give; None for what is none any more."""
    query = prepared(
        conn,
        COUNTED.format(these="hash_algorithm = :algorithm AND content_hash IN :hashes"),
        "hashes",
    )
    figures = {
        (row.hash_algorithm, bytes(row.content_hash), row.tenant_id): {
            # For PostgreSQL a sum of integers is none.
            name: int(getattr(row, name))
            for name in _FIGURES
        }
        for algorithm in {row["hash_algorithm"] for row in rows}
        for row in conn.execute(
            query, {"algorithm": algorithm, "hashes": [row["content_hash"] for row in rows]}
        )
    }
    found = (
        figures.get((row["hash_algorithm"], bytes(row["content_hash"]), row["tenant_id"]))
        for row in rows
    )
    return [one and {**row, **one} for row, one in zip(rows, found, strict=True)]


def _look(
    conn: Connection,
    owners: Sequence[str],
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: Position | None,
) -> list[Row]:
    """Return the next groups of these tenants, each with whether it is wanted."""
    rows = [
        row
        for tenant_id in owners
        for row in _look_at(conn, tenant_id, order, wanted, limit=limit, after=after)
    ]
    if len(owners) > 1:
        # What ranks alike stays in the order of the tenants, in either direction.
        rows.sort(key=itemgetter(*order.columns), reverse=order.is_descending)
    return rows[:limit]


def _look_at(
    conn: Connection,
    tenant_id: str,
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: Position | None,
) -> list[Row]:
    columns, marks = ", ".join(order.columns), ", ".join(f":{name}" for name in order.columns)
    bound: dict[str, object] = {
        **wanted._asdict(),
        "tenant": tenant_id,
        "folder_bytes": len(wanted.folder),
        "limit": limit,
    }
    behind = ""
    if after:
        # One comparison of the whole key, one direction throughout: an OR chain is 25 times slower.
        # Later tenants may have the same content, and stand behind the position with it.
        sign = ("<" if order.is_descending else ">") + ("=" if tenant_id > after.tenant_id else "")
        behind = f"AND ({columns}) {sign} ({marks})"
        bound |= zip(order.columns, after.key, strict=True)
    direction = "DESC" if order.is_descending else "ASC"
    sequence = ", ".join(f"{column} {direction}" for column in order.columns)
    query = (
        f"SELECT g.*, {_is_wanted(wanted)} AS is_wanted, {IS_BEHIND} AS is_behind"
        " FROM duplicate_groups g"
        f" WHERE tenant_id = :tenant {behind} ORDER BY {sequence} LIMIT :limit"
    )
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
            f"(SELECT 1 FROM library_files WHERE {GROUPABLE_OF_TENANT}"
            " AND hash_algorithm = g.hash_algorithm AND content_hash = g.content_hash"
            f" AND {' AND '.join(of_file)} LIMIT 1) IS NOT NULL"
        )
    return f"({' AND '.join(conditions)})" if conditions else "true"


_SPAN = "(hash_algorithm, content_hash) > (:after_algorithm, :after_hash)"
_UNTIL = " AND (hash_algorithm, content_hash) <= (:until_algorithm, :until_hash)"

_HELD = (
    "SELECT hash_algorithm, content_hash, tenant_id, file_count, size_bytes, total_size_bytes,"
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


def count(conn: Connection, tenant_id: str | None, within: Span) -> int:
    """Count the groups of a tenant, or of all, in a span by the files themselves."""
    words, bound = _bounds(tenant_id, within)
    query = prepared(conn, f"SELECT count(*) FROM ({COUNTED.format(these=words)}) counted")
    return int(conn.execute(query, bound).scalar_one())


def wrong(conn: Connection, tenant_id: str | None, within: Span) -> list[Key]:
    """Return the hashes whose row of the summary is lacking, superfluous or has wrong figures."""
    words, bound = _bounds(tenant_id, within)
    counted, held = COUNTED.format(these=words), _HELD.format(span=words)
    # One statement, so that files and summary are those of the same moment.
    query = prepared(
        conn,
        f"SELECT hash_algorithm, content_hash FROM ({counted} EXCEPT {held}) lacking"
        f" UNION SELECT hash_algorithm, content_hash FROM ({held} EXCEPT {counted}) superfluous",
    )
    return [(row[0], bytes(row[1])) for row in conn.execute(query, bound)]


def _bounds(tenant_id: str | None, within: Span) -> tuple[str, dict[str, object]]:
    words = _SPAN
    bound: dict[str, object] = {
        "after_algorithm": within.after[0],
        "after_hash": within.after[1],
    }
    if within.until is not None:
        words += _UNTIL
        bound |= {"until_algorithm": within.until[0], "until_hash": within.until[1]}
    if tenant_id is not None:
        words += " AND tenant_id = :tenant"
        bound["tenant"] = tenant_id
    return words, bound
