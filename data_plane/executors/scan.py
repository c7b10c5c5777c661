"""Walks a library and reports what differs from what is known, one folder at a time in memory.

Names are visited in the byte order of their whole paths, and the known files come in the same
order, so that one pass over both finds what is new, changed and missing.
"""

import os
from collections.abc import Iterator

from data_plane.executor import (
    Context,
    Control,
    Fail,
    ScanCounts,
    ScanReport,
    ScanTask,
    Seen,
    Unseen,
    explain,
    signed64,
    state_of,
)
from data_plane.jail import Jail
from mediaplane.paths import MAX_PATH_BYTES

BATCH = 5000
_WAIT_SECONDS = 0.02


def scan(task: ScanTask, ctx: Context) -> ScanCounts:
    """Walk a library, report the differences and wait until they are taken over."""
    counts = ScanCounts()
    with _open_root(task.root, ctx) as jail:
        task.report.began((signed64(jail.filesystem_id()), signed64(jail.identity[1])))
        _compare(_walk(jail, ctx), task.report, counts, ctx)
        _check_root(task.root, jail)
        task.report.walked(counts)
    while not (verdict := task.report.verdict()):
        ctx.control.wait(_WAIT_SECONDS)
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


def _walk(jail: Jail, ctx: Context) -> Iterator[Seen | Unseen]:
    """Yield every regular file by path; links and special files are passed over."""
    try:
        stack = [iter(_list(jail, b"", ctx))]
    except OSError as error:
        raise Fail("root_unavailable", _lost(error)) from None
    while stack:
        for found in stack[-1]:
            if not isinstance(found, bytes):
                yield found
                continue
            try:
                stack.append(iter(_list(jail, found, ctx)))
                break
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    yield Unseen(found, True, *explain(error))
        else:
            stack.pop()


def _list(jail: Jail, folder: bytes, ctx: Context) -> list[Seen | Unseen | bytes]:
    """Return a folder's files and, as bytes, its folders, in the order of the paths below it."""
    ctx.control.check()
    prefix = folder + b"/" if folder else b""
    found: list[tuple[bytes, Seen | Unseen | bytes]] = []
    descriptor = jail.open_dir(folder)
    try:
        if folder and _is_own(descriptor, ctx):
            return []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                path = prefix + os.fsencode(entry.name)
                try:
                    if entry.is_dir(follow_symlinks=False):
                        # Everything below it begins with its name and a slash.
                        found.append((path + b"/", path))
                    elif entry.is_file(follow_symlinks=False):
                        found.append((path, _look(path, entry)))
                except FileNotFoundError:
                    continue  # gone since it was listed
                except OSError as error:
                    # Perhaps a folder, perhaps a file: what is known of either stays known.
                    reason = explain(error)
                    found.append((path, Unseen(path, False, *reason)))
                    found.append((path + b"/", Unseen(path, True, *reason)))
    finally:
        os.close(descriptor)
    found.sort(key=lambda pair: pair[0])
    return [what for _, what in found]


def _look(path: bytes, entry: os.DirEntry[str]) -> Seen | Unseen:
    # A name that a folder lists can break only this one of the rules for paths.
    if len(path) > MAX_PATH_BYTES:
        return Unseen(path, False, "refused_too_long", "Its path is too long to be opened.")
    info = entry.stat(follow_symlinks=False)
    return Seen(path, *state_of(info), signed64(info.st_dev), signed64(info.st_ino))


def _is_own(descriptor: int, ctx: Context) -> bool:
    info = os.fstat(descriptor)
    return (info.st_dev, info.st_ino) in ctx.own_folders


class _Differences:
    """Counts what a scan finds and reports it in batches."""

    def __init__(self, report: ScanReport, counts: ScanCounts, control: Control) -> None:
        self._report = report
        self._control = control
        self._counts = counts
        self._changed: list[Seen] = []
        self._missing: list[Seen] = []
        self._unseen: list[Unseen] = []

    def seen(self, file: Seen, known: Seen | None) -> None:
        """Take down a file that is there; `known` is what it was like at the last scan."""
        self._counts.seen_files += 1
        self._counts.seen_bytes += file.size_bytes
        if self._counts.seen_files % BATCH == 0:
            self._control.check()  # now and then: it would cost a tenth of the scan each time
        if file == known:
            return
        if known is None:
            self._counts.new_files += 1
        else:
            self._counts.changed_files += 1
        self._changed.append(file)
        if len(self._changed) >= BATCH:
            self.flush()

    def missing(self, file: Seen) -> None:
        """Take down a file that is gone."""
        self._counts.missing_files += 1
        self._missing.append(file)
        if len(self._missing) >= BATCH:
            self.flush()

    def unseen(self, name: Unseen) -> None:
        """Take down a name that could not be looked at."""
        self._counts.errored_files += 1
        self._unseen.append(name)
        if len(self._unseen) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Report everything taken down so far, unless the scan is to end."""
        self._control.check()
        self._report.add(self._changed, self._missing, self._unseen)
        self._changed, self._missing, self._unseen = [], [], []


def _compare(
    walked: Iterator[Seen | Unseen], report: ScanReport, counts: ScanCounts, ctx: Context
) -> None:
    """Report what the walk shows and the database does not know, and the other way round."""
    differences = _Differences(report, counts, ctx.control)
    known = report.known()
    expected = next(known, None)
    for found in walked:
        place = found.rel_path if isinstance(found, Seen) else _place(found)
        while expected is not None and expected.rel_path < place:
            differences.missing(expected)
            expected = next(known, None)
        if isinstance(found, Unseen):
            differences.unseen(found)
            # Not seen is not gone: what is known there stays as it is.
            while expected is not None and _is_at_or_below(expected.rel_path, found):
                expected = next(known, None)
        elif expected is not None and expected.rel_path == found.rel_path:
            differences.seen(found, expected)
            expected = next(known, None)
        else:
            differences.seen(found, None)
        ctx.control.items = counts.seen_files
    while expected is not None:
        differences.missing(expected)
        expected = next(known, None)
    differences.flush()


def _place(name: Unseen) -> bytes:
    """Return where in the order of the walk a name stands: a folder where its files would."""
    return name.rel_path + b"/" if name.is_folder else name.rel_path


def _is_at_or_below(path: bytes, unseen: Unseen) -> bool:
    place = _place(unseen)
    return path.startswith(place) if unseen.is_folder else path == place
