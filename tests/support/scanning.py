"""A scan without a database: what it is told is known, and what it reports."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path

from data_plane.executor import Context, Control, Found, ScanCounts, ScanTask, Seen, Unseen
from data_plane.executors.scan import scan
from data_plane.file_states import signed64
from data_plane.jail import Jail


class MemoryReport:
    """Keeps everything that a scan reports, in the order in which it is reported."""

    def __init__(self, known: Iterable[Seen] = ()) -> None:
        self.files = {file.rel_path: file for file in known}
        self.new: list[Found] = []
        self.altered: list[Seen] = []
        self.missing: list[Seen] = []
        self.unseen: list[Unseen] = []
        self.adds = 0
        self.waits = 0  # how often a scan is still to wait before it may add more
        self.counts: ScanCounts | None = None
        self.root: tuple[int, int] | None = None
        self.verdicts: list[tuple[str, str] | bool] = []
        # Called after every report, as something that happens in the middle of the walk.
        self.meddle: Callable[[], None] = lambda: None

    def is_held_back(self) -> bool:
        self.waits -= 1
        return self.waits >= 0

    def known(self) -> Iterator[Seen]:
        yield from sorted(self.files.values())

    def add(
        self,
        new: Sequence[Found],
        changed: Sequence[Seen],
        missing: Sequence[Seen],
        unseen: Sequence[Unseen],
    ) -> None:
        self.new += new
        self.altered += changed
        self.missing += missing
        self.unseen += unseen
        self.adds += 1
        self.meddle()

    def began(self, root: tuple[int, int]) -> None:
        self.root = root

    def walked(self, counts: ScanCounts) -> None:
        self.counts = counts

    def verdict(self) -> tuple[str, str] | bool:
        return self.verdicts.pop(0) if self.verdicts else True

    @property
    def changed(self) -> list[Seen]:
        """What is new or changed, by path if each of both was reported by path."""
        return list(merge(map(Seen._make, self.new), self.altered))

    @property
    def changed_paths(self) -> list[bytes]:
        return [file.rel_path for file in self.changed]

    @property
    def missing_paths(self) -> list[bytes]:
        return [file.rel_path for file in self.missing]

    @property
    def unseen_codes(self) -> dict[bytes, str]:
        return {name.rel_path: name.code for name in self.unseen}

    def taken_over(self) -> "MemoryReport":
        """The report of the next scan: what this one reported is known to it."""
        files = self.files | {file.rel_path: file for file in self.changed}
        gone = set(self.missing_paths)
        return MemoryReport(file for path, file in files.items() if path not in gone)


def context(control: Control | None = None, *own_folders: Path) -> Context:
    identities = frozenset((folder.stat().st_dev, folder.stat().st_ino) for folder in own_folders)
    return Context(control or Control(), Jail, identities)


def scanned(root: Path, report: MemoryReport | None = None) -> MemoryReport:
    """Scan a folder, and return the report."""
    report = report or MemoryReport()
    scan(ScanTask("pictures", bytes(root), report), context())
    return report


def put(root: Path, rel: bytes, content: bytes = b"") -> None:
    path = os.path.join(bytes(root), rel)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def seen(root: Path, rel: bytes) -> Seen:
    """A file as a scan should see it, by other means."""
    info = os.lstat(os.path.join(bytes(root), rel))
    return Seen(rel, info.st_size, info.st_mtime_ns, device_of(root), signed64(info.st_ino))


def device_of(folder: Path) -> int:
    """The number of a folder's file system, as the database has it."""
    return (os.statvfs(folder).f_fsid or folder.stat().st_dev) % (1 << 63)
