"""Walks a library and reports what differs from what is known, one folder at a time in memory.

Names are visited in the byte order of their whole paths, and the known files come in the same
order, so that one pass over both finds what is new, changed and missing.
"""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from data_plane.executor import Context, Fail, Found, ScanCounts, ScanSettings, ScanTask, Unseen
from data_plane.executors.comparison import OTHER_FILESYSTEM, compare
from data_plane.file_states import explain, signed64
from data_plane.globs import Matcher, compile_globs
from data_plane.jail import Jail
from data_plane.mounts import Mounts
from mediaplane.paths import MAX_PATH_BYTES

_WAIT_SECONDS = 0.02
# New or changed, so that it is worth while to be ready for their hashes: a hash mostly comes next.
MANY_FILES = 1000
_TOO_LONG = ("refused_too_long", "Its path is too long to be opened.")
_PATH = itemgetter(0)


class _Choice(NamedTuple):
    """What the walk looks at; one that passes over nothing must cost nothing for each file."""

    excludes: Matcher | None
    includes: Matcher | None
    min_size_bytes: int
    device: int | None  # the only file system that is entered, unless any is
    own_folders: frozenset[tuple[int, int]]
    mounts: Mounts


def scan(task: ScanTask, ctx: Context) -> ScanCounts:
    """Walk a library, report the differences and wait until they are taken over."""
    counts = ScanCounts()
    with _open_root(task.root, ctx) as jail:
        task.report.began((signed64(jail.filesystem_id()), signed64(jail.identity[1])))
        mounts = Mounts(jail, task.known_device)
        choice = _choose(task.settings, jail, mounts, ctx)
        compare(_walk(jail, choice, ctx), task.report, counts, mounts.is_away, ctx)
        _check_root(task.root, jail)
        task.report.walked(counts)
    if counts.new_files + counts.changed_files >= MANY_FILES:
        ctx.expect_hashing()
    while not (verdict := task.report.verdict()):
        ctx.await_verdict(_WAIT_SECONDS)
        ctx.control.check()
    if isinstance(verdict, tuple):
        raise Fail(*verdict)
    return counts


def _open_root(root: bytes, ctx: Context) -> Jail:
    try:
        jail = ctx.open_jail(root)
    except OSError as error:
        raise Fail("root_unavailable", _lost(error)) from None
    return jail


def _check_root(root: bytes, jail: Jail) -> None:
    """Refuse a report of a root that was unmounted or replaced while it was walked."""
    try:
        now = os.stat(root)
    except OSError as error:
        raise Fail("root_unavailable", _lost(error)) from None
    if (now.st_dev, now.st_ino) != jail.identity:
        raise Fail("root_changed", "The library's folder was replaced during the scan; try again.")


def _lost(error: OSError) -> str:
    return (
        f"The library's folder cannot be opened ({error.strerror}); nothing was changed."
        " Is its disk mounted?"
    )


def _choose(settings: ScanSettings, jail: Jail, mounts: Mounts, ctx: Context) -> _Choice:
    hidden = [".*"] if settings.skips_hidden else []
    return _Choice(
        compile_globs([*settings.exclude_globs, *hidden]),
        compile_globs(settings.include_globs),
        settings.min_size_bytes,
        None if settings.crosses_filesystems else jail.identity[0],
        ctx.own_folders,
        mounts,
    )


def _walk(jail: Jail, choice: _Choice, ctx: Context) -> Iterator[list[Found] | Unseen]:
    """Yield all regular files by path, in runs; links and special files are passed over."""
    try:
        stack = [iter(_list(jail, b"", choice))]
    except OSError as error:
        raise Fail("root_unavailable", _lost(error)) from None
    while stack:
        for found in stack[-1]:
            if not isinstance(found, bytes):
                yield found
                continue
            # A pattern such as 'trips/**' matches everything below a folder, and not the folder.
            if choice.excludes and choice.excludes(found + b"/"):
                continue
            ctx.control.check()
            if len(found) > MAX_PATH_BYTES:
                yield Unseen(found, True, *_TOO_LONG)
                continue
            try:
                stack.append(iter(_list(jail, found, choice)))
                break
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    yield Unseen(found, True, *explain(error))
        else:
            stack.pop()


def _list(jail: Jail, folder: bytes, choice: _Choice) -> Iterable[list[Found] | Unseen | bytes]:
    """Return a folder's files and, as bytes, its folders, in the order of the paths below it."""
    descriptor = jail.open_dir(folder)
    try:
        info = os.fstat(descriptor)
        if folder and (stop := _stop_at(folder, info, choice)) is not None:
            return stop
        devices = choice.mounts.enter(folder, descriptor, info.st_dev)
        with os.scandir(descriptor) as entries:
            files, others = _look(entries, folder + b"/" if folder else b"", choice, devices)
    finally:
        os.close(descriptor)
    files.sort()
    others.sort(key=_PATH)
    return _runs(files, others)


def _look(
    entries: Iterable[os.DirEntry[str]],
    prefix: bytes,
    choice: _Choice,
    devices: Mapping[int, int],
) -> tuple[list[Found], list[tuple[bytes, Unseen | bytes]]]:
    """Return a folder's files, and its other names with their places in the order of the paths."""
    files: list[Found] = []
    others: list[tuple[bytes, Unseen | bytes]] = []
    excludes, includes, min_size_bytes = choice.excludes, choice.includes, choice.min_size_bytes
    for entry in entries:
        path = prefix + os.fsencode(entry.name)
        if excludes is not None and excludes(path):
            continue
        try:
            if entry.is_file(follow_symlinks=False):
                if includes is not None and not includes(path):
                    continue
                # A name that a folder lists can break only this one of the rules for paths.
                if len(path) > MAX_PATH_BYTES:
                    others.append((path, Unseen(path, False, *_TOO_LONG)))
                    continue
                info = entry.stat(follow_symlinks=False)
                if (size := info.st_size) >= min_size_bytes:
                    device = devices.get(info.st_dev, info.st_dev)
                    files.append((path, size, info.st_mtime_ns, device, info.st_ino))
            elif entry.is_dir(follow_symlinks=False):
                # Everything below it begins with its name and a slash.
                others.append((path + b"/", path))
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError as error:
            # Perhaps a folder, perhaps a file: what is known of either stays known.
            reason = explain(error)
            others.append((path, Unseen(path, False, *reason)))
            others.append((path + b"/", Unseen(path, True, *reason)))
    return files, others


def _runs(
    files: list[Found], others: list[tuple[bytes, Unseen | bytes]]
) -> Iterator[list[Found] | Unseen | bytes]:
    """Yield the files in runs, between the other names of their folder."""
    at = 0
    for place, other in others:
        end = bisect_left(files, place, at, key=_PATH)
        if end > at:
            yield files[at:end]
        yield other
        at = end
    if at < len(files):
        yield files[at:]


def _stop_at(folder: bytes, info: os.stat_result, choice: _Choice) -> list[Unseen] | None:
    """Return what stands for a folder that is not to be entered, None for any other."""
    if (info.st_dev, info.st_ino) in choice.own_folders:
        return []
    if choice.device in (None, info.st_dev):
        return None
    message = (
        "Another file system is mounted here; what is known below it stays as it is. Let scans"
        " of the library cross file systems, or exclude the folder."
    )
    return [Unseen(folder, True, OTHER_FILESYSTEM, message)]
