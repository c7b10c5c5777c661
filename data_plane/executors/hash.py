"""Hashes the files of a shard; a file that changes meanwhile never gets a hash."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from data_plane.digests import hash_file
from data_plane.executor import Context, Hashed, HashResult, HashTask, ToHash, Unhashed
from data_plane.hashers import HasherLost, hash_elsewhere
from data_plane.jail import Jail

log = logging.getLogger(__name__)

# Of files up to this size Python is the larger part of the work: they go to a process of their
# own, in batches; but only when there are enough of them to be worth its start.
SMALL_BYTES = 256 << 10
MANY_FILES = 64
BATCH_FILES = 256


def hash_files(task: HashTask, ctx: Context) -> HashResult:
    """Hash every file that still is as it was scanned."""
    result = HashResult()
    files = list(task.files)
    has_many = sum(file.size_bytes <= SMALL_BYTES for file in files) >= MANY_FILES
    with ExitStack() as stack:
        jails: dict[bytes, Jail | None] = {}
        for batch in _batches(files, BATCH_FILES if has_many else 1):
            ctx.control.check()
            root = batch[0].root
            if root not in jails:
                jails[root] = _jail(root, ctx, stack)
            jail = jails[root]
            if jail is None:
                result.left += len(batch)
                continue
            for outcome in _hash_batch(batch, jail, ctx):
                if isinstance(outcome, Hashed):
                    result.hashed.append(outcome)
                else:
                    result.unhashed.append(outcome)
    return result


def _batches(files: Sequence[ToHash], limit: int) -> Iterator[list[ToHash]]:
    """Yield runs of small files below one root, and every other file by itself."""
    batch: list[ToHash] = []
    for file in files:
        is_small = file.size_bytes <= SMALL_BYTES
        if batch and (len(batch) >= limit or not is_small or file.root != batch[0].root):
            yield batch
            batch = []
        batch.append(file)
        if not is_small:
            yield batch
            batch = []
    if batch:
        yield batch


def _jail(root: bytes, ctx: Context, stack: ExitStack) -> Jail | None:
    try:
        return stack.enter_context(ctx.open_jail(root))
    except OSError:
        return None  # not mounted: its files are left for another time


def _hash_batch(batch: Sequence[ToHash], jail: Jail, ctx: Context) -> Iterator[Hashed | Unhashed]:
    if len(batch) > 1:
        try:
            outcomes = hash_elsewhere(jail, batch, ctx.control.check)
        except HasherLost:
            log.warning("A process that hashes small files was lost; they are hashed without it")
        else:
            ctx.control.items += len(batch)
            ctx.control.bytes += sum(file.size_bytes for file in batch)
            yield from outcomes
            return
    for file in batch:
        ctx.control.check()
        done = ctx.control.bytes
        yield hash_file(file, jail.open_file, _telling(ctx))
        ctx.control.items += 1
        ctx.control.bytes = done + file.size_bytes


def _telling(ctx: Context) -> Callable[[int], None]:
    def read(length: int) -> None:
        ctx.control.bytes += length
        ctx.control.check()

    return read
