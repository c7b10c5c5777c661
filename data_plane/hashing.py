"""The SQL of hash jobs: reads which files need a hash, and writes what came of them."""

from collections.abc import Iterator
from functools import partial
from itertools import count as count_from
from operator import itemgetter

from sqlalchemy import Connection, String, bindparam, text
from sqlalchemy.sql.elements import TextClause

from data_plane.executor import HashResult, HashTask, PrefixTask, ToHash
from data_plane.output import HASHED_BYTES, HASHED_FILES
from mediaplane.protocol import kinds
from mediaplane.protocol.bulk import update_many
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database, count, lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES, summarise_files
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
# No other file of its size and tenant begins as this one does: it has no duplicate.
_IS_DISTINCT = (
    "f.prefix_hash IS NOT NULL AND l.hash_policy = 'candidates'"
    " AND NOT EXISTS (SELECT 1 FROM library_files o WHERE NOT o.is_missing AND o.id <> f.id"
    f"  AND o.size_bytes = f.size_bytes AND o.prefix_hash = f.prefix_hash AND o.{_IS_OF_TENANT})"
    f" AND f.size_bytes NOT IN ({_SIZES_IN_DOUBT})"
)


def _marked(is_distinct: str, which: str, order: str) -> TextClause:
    # The type matters where the value is NULL, which PostgreSQL cannot guess from.
    return text(
        "SELECT f.id, l.absolute_path, f.rel_path, f.size_bytes, f.mtime_ns, l.hash_algorithm,"
        f" {is_distinct} AS is_distinct"
        " FROM library_files f JOIN libraries l ON l.slug = f.library_id"
        f" WHERE f.needs_hash AND {which}"
        " AND l.is_active AND l.deleted_at IS NULL AND l.tenant_id = :tenant"
        " AND (:library IS NULL OR f.library_id = :library)"
        f" ORDER BY {order}"
    ).bindparams(bindparam("library", type_=String()))


_SMALL = _marked("false", f"{_BY_ID} AND {_IS_FITTING}", "f.id")
_LARGE = _marked(_IS_DISTINCT, _BY_SIZE, "f.size_bytes, f.id")
# Of any size, as an older version has cut them.
_ANY = _marked(_IS_DISTINCT, _BY_ID, "f.id")
_WITHOUT_PREFIX = _marked(
    "false", f"{_BY_ID} AND {kinds.IS_STAGED.format(file='f', library='l')}", "f.id"
)
_JOB = text("SELECT tenant_id AS tenant, library_id AS library FROM jobs WHERE id = :job")
_PREFIX_ITEMS = text(
    "SELECT DISTINCT status FROM job_items WHERE job_id = :job AND status IN ('pending', 'running')"
    f" AND item_key LIKE '{kinds.PREFIX_ITEM}%'"
)

_ID, _SIZE = itemgetter(0), itemgetter(1)
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
    shard = kinds.decode_item(JobKind.HASH, item["payload"])
    if shard.is_prefix:
        _distinct, files = _read(database, item["job_id"], shard, _WITHOUT_PREFIX)
        return PrefixTask(files)
    if shard.largest_bytes <= kinds.SMALL_BYTES:
        return HashTask(lambda: False, partial(_read, database, item["job_id"], shard, _SMALL))
    query = _LARGE if shard.smallest_bytes > kinds.SMALL_BYTES else _ANY
    return HashTask(
        partial(_is_early, database, item["job_id"], count_from()),
        partial(_read, database, item["job_id"], shard, query),
    )


def _is_early(database: Database, job_id: int, looks: Iterator[int]) -> bool:
    with database.read() as conn:
        statuses = set(conn.execute(_PREFIX_ITEMS, {"job": job_id}).scalars())
    # Beginnings that nobody reads are not waited for, because that may be up to us; but for one
    # look: on PostgreSQL, who claims steps over what another is about to claim.
    return statuses == {"running"} or (bool(statuses) and next(looks) == 0)


def _read(
    database: Database, job_id: int, shard: kinds.HashItemPayload, query: TextClause
) -> tuple[list[ToHash], list[ToHash]]:
    """Return the files of a shard: those that need not be read, and those that need to be."""
    with database.read() as conn:
        job = conn.execute(_JOB, {"job": job_id}).mappings().one()
        bound = {
            **job,
            "first": shard.first_file_id,
            "last": shard.last_file_id,
            "smallest": shard.smallest_bytes,
            "largest": shard.largest_bytes,
        }
        # As the driver reads them: whatever is done here for each file outweighs its hash.
        rows = conn.execute(query, bound).cursor.fetchall()
    distinct = [ToHash._make(row[:-1]) for row in rows if row[-1]]
    return distinct, [ToHash._make(row[:-1]) for row in rows if not row[-1]]


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
    update_many(
        conn,
        f"{_IS_DONE} hash_algorithm = {{algorithm}}, content_hash = {{digest}}, {_AS_READ}",
        _STATE | {"algorithm": "TEXT", "digest": "BYTEA"},
        hashed,
    )
    update_many(conn, _IS_DONE + _AS_READ, _STATE, [_state(file, now) for file in result.distinct])
    update_many(
        conn,
        f"UPDATE library_files SET prefix_hash = {{digest}}, {_AS_READ}",
        _STATE | {"digest": "BYTEA"},
        [(*_state(file, now), digest) for file, digest in result.prefixes],
    )
    update_many(
        conn,
        f"UPDATE library_files SET error_code = {{code}}, error_message = {{message}}, {_AS_READ}",
        _STATE | {"code": "TEXT", "message": "TEXT"},
        [(*_state(file, now), code, message) for file, code, message in result.unhashed],
    )
    summarise_files(conn, list(map(_ID, hashed)))


def _state(file: ToHash, now: int) -> tuple[int, int, int, int]:
    return file.file_id, file.size_bytes, file.mtime_ns, now
