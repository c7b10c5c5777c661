"""Decides which files are hashed, and cuts the work into shards that many workers share."""

from collections.abc import Iterable, Iterator
from math import inf

from sqlalchemy import Connection

from control_plane.store import hashing, jobs, relocations
from mediaplane.protocol import kinds
from mediaplane.protocol.driver import Row

# A shard ends at whichever comes first: large enough that its bookkeeping does not count (with
# 2,000 files in each, SQLite took a third longer for a whole job), small enough that a worker which
# dies loses little. The first are smaller: workers share a small library as well.
SHARD_FILES = 8000
SHARD_BYTES = 256 << 20
_FIRST_FILES = 1000
# Few, so that all workers share them: until they are done nobody knows what else to read.
PREFIX_FILES = 250


def plan(conn: Connection, job: Row) -> Row:
    """Mark what is to be hashed and give the job its items."""
    tenant_id, library_id = job["tenant_id"], job["library_id"]
    relocations.follow(conn, tenant_id)  # by the hashes of the last job: they are the latest
    hashing.mark(conn, tenant_id)
    beginnings = hashing.marked(conn, tenant_id, library_id, is_prefix=True)
    # Added first, so that they are claimed first: they save others from being read.
    jobs.add_items(
        conn,
        [
            {
                "job_id": job["id"],
                "item_key": f"{kinds.PREFIX_ITEM}{first}-{last}",
                "payload": kinds.encode(kinds.HashItemPayload(first, last, is_prefix=True)),
            }
            for first, last, _files, _bytes in cut(beginnings, most_files=PREFIX_FILES)
        ],
    )
    return add_shards(conn, job, hashing.marked(conn, tenant_id, library_id))


def add_shards(conn: Connection, job: Row, files: Iterable[tuple[int, int]]) -> Row:
    """Give a job an item for every shard of its files, and count them."""
    shards = list(cut(files, SHARD_FILES, SHARD_BYTES))
    jobs.add_items(
        conn,
        [
            {
                "job_id": job["id"],
                "item_key": f"files-{first}-{last}",
                "payload": kinds.encode(kinds.HashItemPayload(first, last)),
                "total_items": files_in_shard,
                "total_bytes": size_bytes,
            }
            for first, last, files_in_shard, size_bytes in shards
        ],
    )
    return jobs.set_totals(
        conn,
        job["id"],
        total_items=sum(shard[2] for shard in shards),
        total_bytes=sum(shard[3] for shard in shards),
    )


def cut(
    files: Iterable[tuple[int, int]], most_files: int, most_bytes: float = inf
) -> Iterator[tuple[int, int, int, int]]:
    """Yield shards of (first id, last id, files, bytes) from files of (id, size)."""
    first = last = count = size = done = 0
    for file_id, file_size in files:
        if count == 0:
            first = file_id
        last, count, size = file_id, count + 1, size + file_size
        if count >= min(most_files, _FIRST_FILES + done // 8) or size >= most_bytes:
            yield first, last, count, size
            done += count
            count = size = 0
    if count:
        yield first, last, count, size
