"""Duplicate groups: pages of them, and where their summary differs from the files."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.store import tenants
from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Values
from mediaplane.protocol.duplicates import COUNTED, GROUPABLE, GROUPABLE_OF_TENANT, IS_BEHIND

# With a filter a call looks at this many groups with each query, and at so many in all.
LOOK_GROUPS = 1000
MAX_LOOKED_AT = 5 * LOOK_GROUPS

# What a page shows of a group, in this order: whose and which it is, and its figures.
_FIGURES = ("file_count", "size_bytes", "total_size_bytes", "reclaimable_bytes")
SHOWN = ("tenant_id", "hash_algorithm", "content_hash", *_FIGURES)
# What ranks a group is a figure of it, negated.
_RANKS = {"rank_by_count": "file_count", "rank_by_size": "total_size_bytes"}

Key = tuple[str, bytes]


class Order(NamedTuple):
    """A way to list groups: the columns of an index, and the direction it is read in."""

    columns: tuple[str, ...]
    is_descending: bool

    def key(self, row: Values) -> Values:
        """Return where a group stands."""
        return tuple(
            -row[SHOWN.index(_RANKS[column])] if column in _RANKS else row[SHOWN.index(column)]
            for column in self.columns
        )


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

    key: Values
    tenant_id: str


def page(
    conn: Connection,
    tenant_id: str | None,
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: Position | None,
) -> tuple[list[Values], Values | None]:
    """Return groups behind a position, and the group to go on behind if there may be more.

    Each begins with the values of `SHOWN`, and the last one's are those of the summary. Without a
    tenant, those of all: where several have one content, in the order of the tenants.
    """
    # Without a filter every group is wanted, so the first look decides.
    look = LOOK_GROUPS if any(wanted) else limit + 1
    found: list[tuple[Values, Values]] = []  # each as the summary has it, and as it is shown
    tail = None
    for _ in range(0, MAX_LOOKED_AT, look):
        rows = _look(conn, tenant_id, order, wanted, limit=look, after=after)
        is_behind = bool(rows) and rows[0][-1]
        if not is_behind and not any(wanted):
            return rows[:limit], rows[limit - 1] if len(rows) > limit else None
        shown = _counted(conn, rows) if is_behind else rows
        found += [(row, one) for row, one in zip(rows, shown, strict=True) if row[-2] and one]
        if len(found) > limit:
            return [one for _, one in found[:limit]], found[limit - 1][0]
        if len(rows) < look:
            return [one for _, one in found], None
        tail = rows[-1]
        after = Position(order.key(tail), tail[0])
    return [one for _, one in found], tail


def _counted(conn: Connection, rows: Sequence[Values]) -> Sequence[Values | None]:
    """Return groups with the figures that their files give; None for what is none any more."""
    query = prepared(
        conn,
        COUNTED.format(these="hash_algorithm = :algorithm AND content_hash IN :hashes"),
        "hashes",
    )
    figures = {
        (one.tenant_id, one.hash_algorithm, bytes(one.content_hash)): tuple(
            # For PostgreSQL a sum of integers is none.
            int(getattr(one, name))
            for name in _FIGURES
        )
        for algorithm in {row[1] for row in rows}
        for one in conn.execute(query, {"algorithm": algorithm, "hashes": [row[2] for row in rows]})
    }
    found = (figures.get(row[:3]) for row in rows)
    return [one and row[:3] + one for row, one in zip(rows, found, strict=True)]


def _look(
    conn: Connection,
    tenant_id: str | None,
    order: Order,
    wanted: Filter,
    *,
    limit: int,
    after: Position | None,
) -> list[Values]:
    """Return the next groups, each with whether it is wanted, and its summary behind the files."""
    bound: dict[str, object] = {}
    if any(wanted):
        bound = {**wanted._asdict(), "folder_bytes": len(wanted.folder)}
    if after:
        bound |= zip(order.columns, after.key, strict=True)
        bound |= {"after_tenant": after.tenant_id, "next_hash": after.key[-1] + b"\0"}
    used = tuple(map(bool, wanted))
    query = _query(order, used, limit, is_later=after is not None)
    rows = tenants.query_each(conn, tenant_id, "duplicate_groups", query, bound)
    if rows and rows[0][0] != rows[-1][0]:
        # What ranks alike stays in the order of the tenants, in either direction.
        rows.sort(key=order.key, reverse=order.is_descending)
    return rows[:limit]


# Remembered, because to write it out took a tenth of the time of a page.
@lru_cache(maxsize=64)
def _query(order: Order, used: tuple[bool, ...], limit: int, *, is_later: bool) -> str:
    """Return the query of a look, with the parts of a filter that are used."""
    behind = _behind(order) if is_later else ""
    direction = "DESC" if order.is_descending else "ASC"
    sequence = ", ".join(f"{column} {direction}" for column in order.columns)
    # The limit is written out: as a parameter, PostgreSQL would plan the query anew each time.
    return (
        f"SELECT {', '.join(SHOWN)}, {_is_wanted(*used)} AS is_wanted, {IS_BEHIND} AS is_behind"
        " FROM duplicate_groups g"
        f" WHERE tenant_id = :tenant {behind} ORDER BY {sequence} LIMIT {limit}"
    )


def _behind(order: Order) -> str:
    """Return the condition to stand behind a position."""
    # One comparison of the whole key, one direction throughout: an OR chain is 25 times slower.
    # Later tenants stand behind the position with its own content, too. So for them the next hash
    # is another than for the others: between one and the same with a zero byte there is none.
    sign, own, other = ("<", ":next_hash", ":content_hash")
    if not order.is_descending:
        sign, own, other = (">=", ":content_hash", ":next_hash")
    marks = ", ".join(f":{column}" for column in order.columns[:-1])
    place = f"CASE WHEN :tenant > :after_tenant THEN {own} ELSE {other} END"
    return f"AND ({', '.join(order.columns)}) {sign} ({marks}, {place})"


# Of the names of one file only one has its hash; the others are other ways to it, perhaps by
# another library.
_HAS_NAME = (
    "EXISTS (SELECT 1 FROM library_files n WHERE NOT n.is_missing"
    " AND n.size_bytes = library_files.size_bytes AND n.device = library_files.device"
    " AND n.inode = library_files.inode"
    " AND n.library_id NOT IN"
    " (SELECT slug FROM libraries WHERE deleted_at IS NOT NULL OR tenant_id <> :tenant)"
    " AND {is_asked_for})"
)


def _is_wanted(library: bool, folder: bool, media_type: bool, min_size: bool) -> str:
    """Return the condition of a filter, with the parts that are used."""
    conditions = ["size_bytes >= :min_size_bytes"] if min_size else []
    of_file = [
        condition
        for is_used, condition in (
            (library, "{file}.library_id = :library_id"),
            (folder, "substr({file}.rel_path, 1, :folder_bytes) = :folder"),
            (media_type, "{file}.media_type = :media_type"),
        )
        if is_used
    ]
    if of_file:
        is_asked_for = " AND ".join(of_file)
        # Not EXISTS: PostgreSQL would read all files into a hash table to answer it.
        conditions.append(
            f"(SELECT 1 FROM library_files WHERE {GROUPABLE_OF_TENANT}"
            " AND hash_algorithm = g.hash_algorithm AND content_hash = g.content_hash"
            f" AND ({is_asked_for.format(file='library_files')}"
            f" OR {_HAS_NAME.format(is_asked_for=is_asked_for.format(file='n'))})"
            " LIMIT 1) IS NOT NULL"
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
