"""The SQL of hash jobs: reads which files need a hash, and writes what came of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count as count_from
from operator import itemgetter
from typing import Any, cast

from sqlalchemy import Connection, String, bindparam, text
from sqlalchemy.sql.elements import TextClause

from data_plane.executor import HashResult, HashTask, Marked, PrefixTask, Sized, ToHash
from data_plane.output import HASHED_BYTES, HASHED_FILES
from data_plane.roots import Root
from mediaplane.protocol import kinds
from mediaplane.protocol.bulk import update_many
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database, count, lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES, summarise_files
from mediaplane.protocol.statements import among, id_list
from mediaplane.protocol.values import JobKind

# By what it is not: so that sizes and beginnings are looked up by their index all the same.
_IS_OF_TENANT = "library_id NOT IN (SELECT slug FROM libraries WHERE tenant_id <> :tenant)"
_BY_ID = "f.id BETWEEN :first AND :last"
_IS_FITTING = "f.size_bytes BETWEEN :smallest AND :largest"
_IS_LARGE_MARKED = (
    f"{{file}}.needs_hash AND {kinds.IS_LARGE}"
    " AND {file}.size_bytes BETWEEN :smallest AND :largest"
)
# The sum keeps databases from looking at all ids in between.
_BY_SIZE = f"{_IS_LARGE_MARKED.format(file='f')} AND f.id + 0 BETWEEN :first AND :last"
# Sizes of which another file may turn out to begin alike.
_SIZES_IN_DOUBT = (
    "SELECT o.size_bytes FROM library_files o WHERE o.size_bytes IN (SELECT s.size_bytes"
    f"  FROM library_files s WHERE {_IS_LARGE_MARKED.format(file='s')}"
    "   AND s.prefix_hash IS NOT NULL)"
    # Without this PostgreSQL would look at all sizes.
    " AND o.size_bytes BETWEEN :smallest AND :largest"
    " AND NOT o.is_missing AND o.prefix_hash IS NULL"
    " AND (o.needs_hash OR o.content_hash IS NOT NULL)"
    f" AND o.{_IS_OF_TENANT}"
)
# To be read only if another begins alike, and not in any case.
_IS_CHOSEN = "l.hash_policy = 'candidates'"
# No other file of its size and tenant begins as this one does: it has no duplicate.
_IS_DISTINCT = (
    f"f.prefix_hash IS NOT NULL AND {_IS_CHOSEN}"
    " AND NOT EXISTS (SELECT 1 FROM library_files o WHERE NOT o.is_missing AND o.id <> f.id"
    f"  AND o.size_bytes = f.size_bytes AND o.prefix_hash = f.prefix_hash AND o.{_IS_OF_TENANT})"
    f" AND f.size_bytes NOT IN ({_SIZES_IN_DOUBT})"
)
_IS_STAGED = kinds.IS_STAGED.format(file="f", library="l")
# All files of some sizes that count.
_OF_SIZES = (
    "SELECT o.id, o.size_bytes, o.prefix_hash FROM library_files o WHERE {sizes}"
    " AND NOT o.is_missing"
    " AND (o.prefix_hash IS NOT NULL OR o.needs_hash OR o.content_hash IS NOT NULL)"
    f" AND o.{_IS_OF_TENANT}"
)


def _marked(columns: str, which: str, order: str) -> TextClause:
    # The type matters where the value is NULL, which PostgreSQL cannot guess from.
    return text(
        "SELECT f.id, l.absolute_path, f.rel_path, f.size_bytes, f.mtime_ns, l.hash_algorithm"
        f"{columns} FROM library_files f JOIN libraries l ON l.slug = f.library_id"
        f" WHERE f.needs_hash AND {which}"
        " AND l.is_active AND l.deleted_at IS NULL AND l.tenant_id = :tenant"
        " AND (:library IS NULL OR f.library_id = :library)"
        f" ORDER BY {order}"
    ).bindparams(bindparam("library", type_=String()))


_SMALL = _marked("", f"{_BY_ID} AND {_IS_FITTING}", "f.id")
_LARGE = _marked(f", {_IS_DISTINCT}, {_IS_CHOSEN}, {_IS_STAGED}", _BY_SIZE, "f.size_bytes, f.id")
# Of any size, as an older version has cut them.
_ANY = _marked(f", {_IS_DISTINCT}, false, false", _BY_ID, "f.id")
_STAGED = _marked("", f"{_BY_SIZE} AND {_IS_STAGED}", "f.id")
# Of any size, likewise.
_ANY_STAGED = _marked("", f"{_BY_ID} AND {_IS_STAGED}", "f.id")
_JOB = text("SELECT tenant_id AS tenant, library_id AS library FROM jobs WHERE id = :job")
_ROOTS = text(
    "SELECT absolute_path, root_device, root_inode FROM libraries"
    " WHERE is_active AND deleted_at IS NULL AND tenant_id = :tenant"
    " AND (:library IS NULL OR slug = :library)"
).bindparams(bindparam("library", type_=String()))
_PREFIX_ITEMS = text(
    "SELECT DISTINCT status FROM job_items WHERE job_id = :job AND status IN ('pending', 'running')"
    f" AND item_key LIKE '{kinds.PREFIX_ITEM}%'"
)

_ID, _SIZE = itemgetter(0), itemgetter(1)
_SIZE_PLACE = ToHash._fields.index("size_bytes")
# With the time, which is read once: to ask SQLite's clock for each file is a fifth of an update.
_STATE = {"id": "BIGINT", "size_bytes": "BIGINT", "mtime_ns": "BIGINT", "now": "BIGINT"}
# A result belongs to the state of the file that was read; a newer scan wins.
_AS_READ = (
    "updated_at = {now}{source} WHERE library_files.id = {id} AND needs_hash"
    " AND library_files.size_bytes = {size_bytes} AND library_files.mtime_ns = {mtime_ns}"
)
_IS_DONE = "UPDATE library_files SET needs_hash = false, error_code = NULL, error_message = NULL, "


def hash_task(database: Database, item: Row) -> HashTask | PrefixTask:
    """Read what is to be hashed of a shard: files, or their beginnings."""
    job_id, shard = item["job_id"], kinds.decode_item(JobKind.HASH, item["payload"])
    is_by_size = shard.smallest_bytes > kinds.SMALL_BYTES
    roots = _roots(database, job_id)
    if shard.is_prefix:
        query = _STAGED if is_by_size else _ANY_STAGED
        return PrefixTask(_read(database, job_id, shard, query), roots)
    if shard.largest_bytes <= kinds.SMALL_BYTES:
        read = partial(_read, database, job_id, shard, _SMALL)
        return HashTask(lambda: False, lambda: Marked(read()), roots)
    query = _LARGE if is_by_size else _ANY
    # Where a shard has several sizes, no other has a file of them: there is nothing to wait for.
    is_whole = is_by_size and shard.smallest_bytes < shard.largest_bytes
    return HashTask(
        (lambda: False) if is_whole else partial(_is_early, database, job_id, count_from()),
        partial(_read_large, database, job_id, shard, query),
        roots,
    )


def _roots(database: Database, job_id: int) -> list[Root]:
    with database.read() as conn:
        of_job = conn.execute(_JOB, {"job": job_id}).mappings().one()
        return [Root(bytes(path), *known) for path, *known in conn.execute(_ROOTS, dict(of_job))]


def _is_early(database: Database, job_id: int, looks: Iterator[int]) -> bool:
    with database.read() as conn:
        statuses = set(conn.execute(_PREFIX_ITEMS, {"job": job_id}).scalars())
    # Beginnings that nobody reads are not waited for, because that may be up to us; but for one
    # look: on PostgreSQL, who claims steps over what another is about to claim.
    return statuses == {"running"} or (bool(statuses) and next(looks) == 0)


def _read(
    database: Database, job_id: int, shard: kinds.HashItemPayload, query: TextClause
) -> list[ToHash]:
    with database.read() as conn:
        return list(map(ToHash._make, _rows(conn, query, _bound(conn, job_id, shard))))


def _read_large(
    database: Database, job_id: int, shard: kinds.HashItemPayload, query: TextClause
) -> Marked:
    with database.read() as conn:
        bound = _bound(conn, job_id, shard)
        rows = _rows(conn, query, bound)
        staged_sizes = {row[_SIZE_PLACE] for row in rows if row[-1]}
        of_their_sizes = _of_sizes(conn, staged_sizes, bound) if staged_sizes else []
    whole: list[ToHash] = []
    undecided: list[ToHash] = []
    distinct: list[ToHash] = []
    for *file, is_distinct, is_chosen, _is_staged in rows:
        one = ToHash._make(file)
        if is_chosen and one.size_bytes in staged_sizes:
            undecided.append(one)
        else:
            (distinct if is_distinct else whole).append(one)
    return Marked(whole, undecided, of_their_sizes, distinct)


def _of_sizes(conn: Connection, sizes: Iterable[int], bound: Mapping[str, Any]) -> list[Sized]:
    dialect = conn.dialect.name
    query = text(_OF_SIZES.format(sizes=among("o.size_bytes", "sizes", dialect)))
    rows = _rows(conn, query, {"tenant": bound["tenant"], "sizes": id_list(sizes, dialect)})
    return list(map(Sized._make, rows))


def _bound(conn: Connection, job_id: int, shard: kinds.HashItemPayload) -> dict[str, Any]:
    return {
        **conn.execute(_JOB, {"job": job_id}).mappings().one(),
        "first": shard.first_file_id,
        "last": shard.last_file_id,
        "smallest": shard.smallest_bytes,
        "largest": shard.largest_bytes,
    }


def _rows(
    conn: Connection, query: TextClause, bound: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    # As the driver reads them: whatever is done here for each file outweighs its hash.
    cursor = cast("Any", conn.execute(query, bound).cursor)
    return cast("Sequence[tuple[Any, ...]]", cursor.fetchall())


def record_hashes(conn: Connection, result: HashResult) -> None:
    """Write the hashes of a shard, and count the duplicate groups that they change."""
    lock(conn, DUPLICATES)
    now = database_time(conn)
    # Without a call for each file: meanwhile nobody else can write to SQLite.
    hashed = [
        (file_id, size, mtime, now, algorithm, digest)
        for (file_id, _root, _path, size, mtime, algorithm), digest in result.hashed
    ]
    count(conn, HASHED_FILES, amount=len(hashed))
    count(conn, HASHED_BYTES, amount=sum(map(_SIZE, hashed)))
    # First, because they belong to files that are marked.
    update_many(
        conn,
        f"UPDATE library_files SET prefix_hash = {{digest}}, {_AS_READ}",
        _STATE | {"digest": "BYTEA"},
        [(*_state(file, now), digest) for file, digest in result.prefixes],
    )
    update_many(
        conn,
        f"{_IS_DONE} hash_algorithm = {{algorithm}}, content_hash = {{digest}}, {_AS_READ}",
        _STATE | {"algorithm": "TEXT", "digest": "BYTEA"},
        hashed,
    )
    update_many(conn, _IS_DONE + _AS_READ, _STATE, [_state(file, now) for file in result.distinct])
    update_many(
        conn,
        f"UPDATE library_files SET error_code = {{code}}, error_message = {{message}}, {_AS_READ}",
        _STATE | {"code": "TEXT", "message": "TEXT"},
        [(*_state(file, now), code, message) for file, code, message in result.unhashed],
    )
    summarise_files(conn, list(map(_ID, hashed)))


def _state(file: ToHash, now: int) -> tuple[int, int, int, int]:
    return file.file_id, file.size_bytes, file.mtime_ns, now
