"""Decides which files are hashed, and cuts the work into shards that many workers share."""

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection
from sqlalchemy.engine import RowMapping

from control_plane.store import hashing, jobs
from mediaplane.protocol import kinds

# A shard ends at whichever comes first: large enough that its bookkeeping does not count,
# small enough that a worker which dies loses little.
SHARD_FILES = 2000
SHARD_BYTES = 1 << 30


def plan(conn: Connection, job: RowMapping) -> RowMapping:
    """Mark what is to be hashed and give the job its items."""
    hashing.mark(conn)
    total_items = total_bytes = 0
    items = []
    for first, last, files, size in cut(hashing.marked(conn, job["library_id"])):
        items.append(
            {
                "job_id": job["id"],
                "item_key": f"files-{first}-{last}",
                "payload": kinds.encode(kinds.HashItemPayload(first, last)),
                "total_items": files,
                "total_bytes": size,
            }
        )
        total_items += files
        total_bytes += size
    jobs.add_items(conn, items)
    return jobs.set_totals(conn, job["id"], total_items=total_items, total_bytes=total_bytes)


def cut(files: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield shards of (first id, last id, files, bytes) from files of (id, size)."""
    first = last = count = size = 0
    for file_id, file_size in files:
        if count == 0:
            first = file_id
        last, count, size = file_id, count + 1, size + file_size
        if count >= SHARD_FILES or size >= SHARD_BYTES:
            yield first, last, count, size
            count = size = 0
    if count:
        yield first, last, count, size
