"""Decides which files are hashed, and cuts the work into shards that many workers share."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from functools import partial
from math import inf

from sqlalchemy import Connection

from control_plane.policy import bites
from control_plane.store import hashing, jobs, relocations
from mediaplane.protocol import kinds
from mediaplane.protocol.database import Database, Topic, changed
from mediaplane.protocol.driver import Row

# A shard ends at whichever comes first: large enough that its bookkeeping does not count (with
# 2,000 files in each, SQLite took a third longer for a whole job), small enough that a worker which
# dies loses little. The first are smaller: workers share a small library as well.
SHARD_FILES = 8000
SHARD_BYTES = 256 << 20
_FIRST_FILES = 1000
# Of very much a shard may be this part, so that all of them can be added at once.
_PART = 1000
# Few, so that all workers share them: until they are done nobody knows what else to read.
PREFIX_FILES = 250


def plan(database: Database, lists: Connection, job: Row) -> None:
    """Mark what is to be hashed and give the job its items, unless it is cancelled meanwhile.

    Its row keeps scans away, so what is found stays true. Whoever dies on the way has marked some
    files, and whoever begins anew marks the others.
    """
    hashing.forget_lists(lists)  # of a plan that failed
    # By the hashes of the last job: they are the latest.
    steps = (_follow, _drop_stale, _unmark, _mark)
    if all(_is_left(database, job) and step(database, lists, job) for step in steps):
        beginnings = array("q")
        files = hashing.marked(lists, job["tenant_id"], job["library_id"])
        shards = list(cut(_noting(files, beginnings), SHARD_FILES, SHARD_BYTES))
        add_shards(database, job, shards, beginnings)
    hashing.forget_lists(lists)


def _is_left(database: Database, job: Row) -> bool:
    with database.read() as conn:
        return jobs.is_unplanned(conn, job["id"])


def _follow(database: Database, lists: Connection, job: Row) -> bool:
    found = relocations.found(lists, job["tenant_id"])

    def read(after: int, limit: int) -> Sequence[int]:
        first = bisect_right(found, after)
        return found[first : first + limit]

    def change(conn: Connection, ids: Sequence[int]) -> None:
        relocations.follow(conn, job["tenant_id"], ids)

    return _write(database, job, read, change)


def _drop_stale(database: Database, lists: Connection, job: Row) -> bool:
    hashing.list_stale(lists, job["tenant_id"])
    return _write(database, job, partial(hashing.stale, lists), hashing.drop_hashes)


def _unmark(database: Database, lists: Connection, job: Row) -> bool:
    hashing.list_wanted(lists, job["tenant_id"])
    unwanted = partial(hashing.unwanted, lists, job["tenant_id"])
    return _write(database, job, unwanted, hashing.unmark)


def _mark(database: Database, lists: Connection, job: Row) -> bool:
    return _write(database, job, partial(hashing.wanted, lists), hashing.mark)


def _write(
    database: Database,
    job: Row,
    read: Callable[[int, int], Sequence[int]],
    change: Callable[[Connection, Sequence[int]], None],
) -> bool:
    """Change files bite by bite, as long as the job waits for its plan."""

    def bite(conn: Connection, ids: Sequence[int]) -> bool:
        is_unplanned = jobs.is_unplanned(conn, job["id"])
        if is_unplanned:
            change(conn, ids)
        return is_unplanned

    return bites.write(database, read, bite)


def _noting(
    files: Iterable[tuple[int, int, bool]], beginnings: MutableSequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield id and size of files, and note those whose beginning is to be read first."""
    for file_id, size, is_staged in files:
        if is_staged:
            beginnings.append(file_id)
        yield file_id, size


def _add_beginnings(conn: Connection, job: Row, file_ids: Iterable[int]) -> None:
    # Added first, so that they are claimed first: they save others from being read.
    jobs.add_items(
        conn,
        [
            {
                "job_id": job["id"],
                "item_key": f"{kinds.PREFIX_ITEM}{first}-{last}",
                "payload": kinds.encode(kinds.HashItemPayload(first, last, is_prefix=True)),
            }
            for first, last, _files, _bytes in cut(((one, 0) for one in file_ids), PREFIX_FILES)
        ],
    )


def add_shards(
    database: Database,
    job: Row,
    shards: Sequence[tuple[int, int, int, int]],
    beginnings: Iterable[int] = (),
) -> None:
    """Give a job an item for every shard and count its files, unless somebody has or it is over."""
    with database.write() as conn:
        if not jobs.is_unplanned(conn, job["id"]):
            return
        _add_beginnings(conn, job, beginnings)
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
        jobs.set_totals(
            conn,
            job["id"],
            total_items=sum(shard[2] for shard in shards),
            total_bytes=sum(shard[3] for shard in shards),
        )
        changed(conn, Topic.WORK)


def cut(
    files: Iterable[tuple[int, int]], most_files: int, most_bytes: float = inf
) -> Iterator[tuple[int, int, int, int]]:
    """Yield shards of (first id, last id, files, bytes) from files of (id, size)."""
    first = last = count = size = done_files = done_bytes = 0
    room_files, room_bytes = min(most_files, _FIRST_FILES), most_bytes
    for file_id, file_size in files:
        if count == 0:
            first = file_id
        last = file_id
        count += 1
        size += file_size
        if count >= room_files or size >= room_bytes:
            yield first, last, count, size
            done_files, done_bytes = done_files + count, done_bytes + size
            count = size = 0
            usual = min(most_files, _FIRST_FILES + done_files // 8)
            room_files = max(usual, done_files // _PART)
            room_bytes = max(most_bytes, done_bytes // _PART)
    if count:
        yield first, last, count, size
