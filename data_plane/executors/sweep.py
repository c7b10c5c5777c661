"""Removes derivatives whose row is gone from the cache, and nothing else from anywhere.

Every folder is opened anew beneath the state directory, without following a link, and names are
removed relative to that open folder: no link or rename can turn a deletion to another place.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice

from data_plane.cache import FOLDER, Owner, SweepTask, is_asset_file, row_of
from data_plane.executor import Context, Control, Fail
from data_plane.jail import Jail, JailRefused

log = logging.getLogger(__name__)

BATCH = 1000


@dataclass
class _Run:
    """A sweep under way."""

    jail: Jail
    task: SweepTask
    control: Control
    unknown: int = 0  # names in the cache that are none of ours


def sweep(task: SweepTask, ctx: Context) -> None:
    """Remove every derivative whose row is gone."""
    with Jail(ctx.state) as jail:
        _check_roots(jail, task.roots)
        run = _Run(jail, task, ctx.control)
        try:
            for owner in Owner:
                _sweep_owner(run, owner)
        except JailRefused as refused:
            raise Fail(
                "cache_refused",
                f"The sweep ended at {os.fsdecode(refused.rel)!r} in the state directory"
                f" ({refused.strerror}). The cache must be a folder of its own; whatever stands"
                " in its place was not touched.",
            ) from None
    log.info("Removed %d files of %d bytes", ctx.control.items, ctx.control.bytes)
    if run.unknown:
        log.warning("Left alone %d names in the cache that are not ours", run.unknown)


def _check_roots(jail: Jail, roots: Sequence[bytes]) -> None:
    """Refuse when a library has the cache for its media.

    A library around the state directory is fine: its scans pass over that folder.
    """
    state = jail.real_path()
    cache = os.path.join(state, FOLDER.encode())
    for root in roots:
        real_root = os.path.realpath(root)
        if real_root in (state, cache) or real_root.startswith(cache + b"/"):
            raise Fail(
                "cache_is_media",
                f"The cache {os.fsdecode(cache)!r} is media of the library at"
                f" {os.fsdecode(root)!r}; nothing was removed. Remove that library, or choose"
                " another state directory.",
            )


def _sweep_owner(run: _Run, owner: Owner) -> None:
    with _opened(run.jail, f"{FOLDER}/{owner}") as folder_fd:
        if folder_fd is None:
            return
        with os.scandir(folder_fd) as entries:
            are_folders = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    shards = [name for name, is_folder in are_folders.items() if is_folder]
    run.unknown += len(are_folders) - len(shards)
    for shard in shards:
        run.control.check()
        with _opened(run.jail, f"{FOLDER}/{owner}/{shard}") as folder_fd:
            # The folder itself stays, even when empty: a writer may be about to use it.
            if folder_fd is not None:
                _sweep_shard(run, owner, shard, folder_fd)


def _sweep_shard(run: _Run, owner: Owner, shard: str, folder_fd: int) -> None:
    names = iter(_our_names(run, owner, shard, folder_fd))
    while batch := dict(islice(names, BATCH)):
        run.control.check()
        # Asked after the folder was listed: a row is there before its files.
        known = run.task.known(owner, set(batch.values()))
        for name, row_id in batch.items():
            if row_id in known:
                continue
            if owner is Owner.ASSETS:
                _remove_folder(run, folder_fd, name)
            else:
                _remove_file(run, folder_fd, name)


def _our_names(run: _Run, owner: Owner, shard: str, folder_fd: int) -> list[tuple[str, int]]:
    """Return the names in the folder of a shard that belong to rows, each with its row."""
    found = []
    with os.scandir(folder_fd) as entries:
        for entry in entries:
            row_id = row_of(owner, shard, entry.name)
            is_plain = entry.is_dir if owner is Owner.ASSETS else entry.is_file
            if row_id is not None and is_plain(follow_symlinks=False):
                found.append((entry.name, row_id))
            else:
                run.unknown += 1
    return found


def _remove_folder(run: _Run, shard_fd: int, name: str) -> None:
    """Remove the files of an asset, and its folder when nothing else is in it."""
    run.control.check()
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder_fd = os.open(name, flags, dir_fd=shard_fd)
    except (FileNotFoundError, NotADirectoryError):
        return  # gone or replaced since it was listed
    try:
        with os.scandir(folder_fd) as entries:
            are_files = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
        for file, is_file in are_files.items():
            if is_file and is_asset_file(file):
                _remove_file(run, folder_fd, file)
            else:
                run.unknown += 1
    finally:
        os.close(folder_fd)
    with suppress(OSError):  # not empty, and then it stays
        os.rmdir(name, dir_fd=shard_fd)


def _remove_file(run: _Run, folder_fd: int, name: str) -> None:
    with suppress(FileNotFoundError):
        size_bytes = os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_size
        os.unlink(name, dir_fd=folder_fd)
        run.control.items += 1
        run.control.bytes += size_bytes


@contextmanager
def _opened(jail: Jail, path: str) -> Iterator[int | None]:
    """Open a folder of the state directory for the block; None when there is none."""
    try:
        folder_fd = jail.open_dir(os.fsencode(path))
    except FileNotFoundError:
        yield None
        return
    try:
        yield folder_fd
    finally:
        os.close(folder_fd)
