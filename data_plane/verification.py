"""The SQL of verify jobs: reads what is known of the files and writes the verdicts."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy import Row as Found

from data_plane.executor import Fail, ToHash
from data_plane.executors.verify import Known, Verdict, VerifyTask
from data_plane.roots import Root
from mediaplane.protocol import kinds
from mediaplane.protocol.bulk import update_many
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database, lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES
from mediaplane.protocol.values import JobKind

_LIBRARY = text(
    "SELECT l.slug, l.absolute_path, l.root_device, l.root_inode"
    " FROM jobs j JOIN libraries l ON l.slug = j.library_id"
    " WHERE j.id = :job AND l.is_active AND l.deleted_at IS NULL"
)
_HASHED = text(
    "SELECT id, rel_path, size_bytes, mtime_ns, hash_algorithm, content_hash, error_code"
    " FROM library_files WHERE id BETWEEN :first AND :last"
    # Joined to nothing, so that SQLite goes by id and not, for every shard, by the whole library.
    " AND library_id || '' = :library"
    " AND NOT is_missing AND NOT needs_hash AND content_hash IS NOT NULL ORDER BY id"
)
# A verdict belongs to the state of the file that was read; a newer scan or hash wins.
_RECORD = (
    "UPDATE library_files SET error_code = {code}, error_message = {message}, updated_at = {now}"
    "{source} WHERE library_files.id = {id} AND library_files.size_bytes = {size_bytes}"
    " AND library_files.mtime_ns = {mtime_ns} AND library_files.content_hash = {digest}"
    " AND NOT is_missing AND NOT needs_hash"
)
_VERDICT = {"id": "BIGINT", "size_bytes": "BIGINT", "mtime_ns": "BIGINT", "digest": "BYTEA",
            "code": "TEXT", "message": "TEXT"}  # fmt: skip


def verify_task(database: Database, item: Row) -> VerifyTask:
    """Read the files of a shard that still have their hash."""
    shard = kinds.decode_item(JobKind.VERIFY, item["payload"])
    with database.read() as conn:
        library = conn.execute(_LIBRARY, {"job": item["job_id"]}).first()
        if library is None:
            raise Fail(
                "library_gone",
                f"The library of job {item['job_id']} is paused, in the trash or gone; make it"
                " active and verify it again.",
            )
        bound = {
            "first": shard.first_file_id,
            "last": shard.last_file_id,
            "library": library.slug,
        }
        rows = conn.execute(_HASHED, bound).all()
    root = Root(bytes(library.absolute_path), library.root_device, library.root_inode)
    return VerifyTask([_known(root.path, row) for row in rows], [root])


def record_verdicts(conn: Connection, verdicts: Sequence[Verdict]) -> None:
    """Write what is wrong with files, and that nothing is any more."""
    if not verdicts:
        return
    lock(conn, DUPLICATES)  # whoever else writes to files holds it: no two wait for each other
    rows = [
        (known.file.file_id, known.file.size_bytes, known.file.mtime_ns, known.digest, *words)
        for known, *words in verdicts
    ]
    statement = _RECORD.replace("{now}", NOW_SQL[conn.dialect.name])
    update_many(conn, statement, _VERDICT, rows)


def _known(root: bytes, row: Found[Any]) -> Known:
    file = ToHash(
        file_id=row.id,
        root=root,
        rel_path=bytes(row.rel_path),
        size_bytes=row.size_bytes,
        mtime_ns=row.mtime_ns,
        algorithm=row.hash_algorithm,
    )
    return Known(file, bytes(row.content_hash), row.error_code is not None)
