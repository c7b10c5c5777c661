"""Decides which files are hashed, and cuts the work into shards that many workers share."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection

from control_plane.policy import bites, shards
from control_plane.policy.shards import Shard
from control_plane.store import hashing, jobs, relocations
from mediaplane.protocol import kinds
from mediaplane.protocol.database import Database, Topic, changed
from mediaplane.protocol.driver import Row

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
        beginnings: list[Shard] = []
        tenant_id, library_id = job["tenant_id"], job["library_id"]
        small = hashing.wanted_small(lists)
        large = _noting(hashing.marked_large(lists, tenant_id, library_id), beginnings)
        cut = [
            # First: what takes long is better begun early.
            *shards.by_size(large),
            *reversed(list(shards.by_id(small, (0, kinds.SMALL_BYTES)))),
        ]
        add_shards(database, job, cut, beginnings)
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
    # Before, because marks become fewer all the time.
    marked = hashing.count_marked(lists)
    hashing.list_wanted(lists, job["tenant_id"], job["library_id"])
    if hashing.count_marked_wanted(lists) == marked:
        return True
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
    files: Iterable[tuple[int, int, bool]], beginnings: MutableSequence[Shard]
) -> Iterator[tuple[int, int]]:
    """Yield id and size of files, and note those whose beginning is to be read first.

    Those are files of which one shard cannot hold all that have their size. Who has them all finds
    out by itself which begin alike.
    """
    for size_bytes, run in groupby(files, key=itemgetter(1)):
        alike = list(run)
        if not shards.is_one(len(alike), size_bytes * len(alike)):
            staged = ((file_id, 0) for file_id, _bytes, is_staged in alike if is_staged)
            beginnings += shards.by_id(
                shards.one_by_one(staged), (size_bytes, size_bytes), shards.Room(PREFIX_FILES)
            )
        yield from ((file_id, size_bytes) for file_id, _bytes, _is_staged in alike)


def _add_beginnings(conn: Connection, job: Row, beginnings: Iterable[Shard]) -> None:
    # Added first, so that they are claimed first: they save others from being read.
    jobs.add_items(
        conn,
        [
            {
                "job_id": job["id"],
                "item_key": f"{kinds.PREFIX_ITEM}{shard.first_id}-{shard.last_id}",
                "payload": kinds.encode(kinds.HashItemPayload(*shard[:4], is_prefix=True)),
            }
            for shard in beginnings
        ],
    )


def add_shards(
    database: Database,
    job: Row,
    cut: Sequence[Shard],
    beginnings: Iterable[Shard] = (),
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
                    "item_key": _key(shard),
                    "payload": kinds.encode(kinds.HashItemPayload(*shard[:4])),
                    "total_items": shard.files,
                    "total_bytes": shard.size_bytes,
                }
                for shard in cut
            ],
        )
        jobs.set_totals(
            conn,
            job["id"],
            total_items=sum(shard.files for shard in cut),
            total_bytes=sum(shard.size_bytes for shard in cut),
        )
        changed(conn, Topic.WORK)


def _key(shard: Shard) -> str:
    ids = f"files-{shard.first_id}-{shard.last_id}"
    is_by_size = shard.smallest_bytes > 0
    return f"{ids}-of-{shard.smallest_bytes}-to-{shard.largest_bytes}" if is_by_size else ids
