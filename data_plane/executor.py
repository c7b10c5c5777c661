"""What an executor is given and how it may end."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple, Protocol

from data_plane.decoders.messages import Done, Failed, Failure, Limits, Order
from data_plane.jail import Jail
from data_plane.roots import Root

# How soon work that waits notices that it is to stop.
_WAIT_SECONDS = 0.1


class Fail(Exception):
    """The work cannot succeed; trying again would not help."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Retry(Fail):
    """The work did not succeed this time and may later."""


class Skip(Exception):
    """An item turned out to be unnecessary; the message says why."""


class Cancelled(Exception):
    """Somebody asked for the work to stop."""


class Interrupted(Exception):
    """The worker is stopping; the work goes back untouched."""


class LeaseLost(Exception):
    """Somebody else has the work now; nothing may be written."""


@dataclass
class Control:
    """How the outside stops a piece of work, and how the work reports how far it is."""

    # Of the whole worker: what is not done by now is put back.
    interrupted: threading.Event = field(default_factory=threading.Event)
    items: int = 0
    bytes: int = 0

    # Made by whoever sets or awaits them: most work is over before, and an event costs more to
    # make than the rest of a tiny job.
    @cached_property
    def cancelled(self) -> threading.Event:
        """Set when somebody asked for the work to stop."""
        return threading.Event()

    @cached_property
    def lost(self) -> threading.Event:
        """Set when somebody else has the work now."""
        return threading.Event()

    def check(self) -> None:
        """Raise what ends the work early, if anything does."""
        made = vars(self)
        if "lost" in made and self.lost.is_set():
            raise LeaseLost
        if "cancelled" in made and self.cancelled.is_set():
            raise Cancelled
        if self.interrupted.is_set():
            raise Interrupted

    def wait(self, seconds: float) -> None:
        """Wait, but not once the work is to end early."""
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0:
            self.check()
            self.interrupted.wait(min(left, _WAIT_SECONDS))
        self.check()


def _refuse(_order: Order, _source: int, _outputs: Sequence[int]) -> Done | Failed:
    return Failed(Failure.UNSUPPORTED, "This worker decodes nothing.")


@dataclass(slots=True)
class Context:
    """What an executor may use: files beneath roots, and the control of its work."""

    control: Control
    open_jail: Callable[[bytes], Jail]
    # Device and inode of folders that are ours, such as the state directory.
    own_folders: frozenset[tuple[int, int]] = frozenset()
    # A new file of this worker's own, gone when the block ends, whatever happens to the worker.
    scratch_file: Callable[[], AbstractContextManager[BinaryIO]] = tempfile.TemporaryFile
    # The state directory, which holds the cache.
    state: bytes = b""
    # Told of bytes that are read; waits as long as the budget demands.
    spend: Callable[[int], None] = lambda _length: None
    # Whether it may demand that: then little is to be read at a time.
    is_limited: bool = False
    # Has a decoder process do an order, given the descriptors of source and outputs.
    decode: Callable[[Order, int, Sequence[int]], Done | Failed] = _refuse
    limits: Limits = field(default_factory=Limits)
    # Waits until the control plane may have judged a scan, but not for long.
    await_verdict: Callable[[float], object] = time.sleep
    # Told that many files are likely to be hashed soon.
    expect_hashing: Callable[[], None] = lambda: None


class Seen(NamedTuple):
    """A file as a scan sees it. Device and inode are signed, as the database stores them."""

    rel_path: bytes
    size_bytes: int
    mtime_ns: int
    device: int
    inode: int


# The same with numbers as the system gives them: what a walk makes of every file is a bare tuple,
# because it takes a third of the time.
Found = tuple[bytes, int, int, int, int]


class Unseen(NamedTuple):
    """A name that a scan could not look at."""

    rel_path: bytes
    is_folder: bool
    code: str
    message: str


@dataclass
class ScanCounts:
    """What a scan has seen so far."""

    seen_files: int = 0
    seen_bytes: int = 0
    new_files: int = 0
    changed_files: int = 0
    missing_files: int = 0
    errored_files: int = 0


class ScanReport(Protocol):
    """Where a scan learns what is known and tells what it sees."""

    def known(self) -> Iterator[tuple[Any, ...]]:
        """Yield the files that were there at the last scan, by path, as the fields of `Seen`."""

    def add(
        self,
        new: Sequence[Found],
        changed: Sequence[Seen],
        missing: Sequence[Seen],
        unseen: Sequence[Unseen],
    ) -> None:
        """Report files that are new, changed or gone, and names not looked at."""

    def is_held_back(self) -> bool:
        """Tell whether to wait before more is added."""

    def began(self, root: tuple[int, int]) -> None:
        """Report which root is being walked, by file system and inode, before anything else."""

    def walked(self, counts: ScanCounts) -> None:
        """Report that the whole library was seen."""

    def verdict(self) -> tuple[str, str] | bool:
        """Return whether the report was taken over yet, or why it was refused."""


@dataclass(frozen=True)
class ScanSettings:
    """What a scan looks at, as the library's settings have it."""

    include_globs: Sequence[str] = ()
    exclude_globs: Sequence[str] = ()
    skips_hidden: bool = False
    crosses_filesystems: bool = False
    min_size_bytes: int = 0


@dataclass(frozen=True)
class ScanTask:
    """Walk a library."""

    library: str
    root: bytes
    report: ScanReport
    settings: ScanSettings = ScanSettings()
    # The id of the file system that it lay on at its last scan, unless it may be another one.
    known_device: int | None = None


class ToHash(NamedTuple):
    """A file to hash, in the state in which it was scanned."""

    file_id: int
    root: bytes
    rel_path: bytes
    size_bytes: int
    mtime_ns: int
    algorithm: str  # one of HashAlgorithm, as the database has it: there may be millions


class Sized(NamedTuple):
    """A file that counts among those of its size, with its beginning as far as that is known."""

    file_id: int
    size_bytes: int
    prefix_hash: bytes | None


class Marked(NamedTuple):
    """The files of a shard."""

    # To be read from end to end.
    whole: Sequence[ToHash] = ()
    # To be read so only if another of their size begins alike; some beginnings are to be read yet.
    undecided: Sequence[ToHash] = ()
    # All files of the sizes of those, they and the ones of other shards included.
    of_their_sizes: Sequence[Sized] = ()
    # Those that need not be read, because no other begins alike.
    distinct: Sequence[ToHash] = ()


@dataclass(frozen=True)
class HashTask:
    """Hash a shard of files, once it is known which of them begin alike."""

    is_early: Callable[[], bool]
    read: Callable[[], Marked]
    # The folders of the libraries that the files are of, as they were at their last scans.
    roots: Sequence[Root] = ()


@dataclass(frozen=True)
class PrefixTask:
    """Hash the beginnings of a shard of files."""

    files: Sequence[ToHash]
    roots: Sequence[Root] = ()


class Hashed(NamedTuple):
    """The hash of a file in the state in which it was scanned."""

    file: ToHash
    digest: bytes


class Unhashed(NamedTuple):
    """A file that could not be hashed."""

    file: ToHash
    code: str
    message: str


@dataclass
class HashResult:
    """What became of the files of a shard."""

    hashed: list[Hashed] = field(default_factory=list)
    unhashed: list[Unhashed] = field(default_factory=list)
    # Files without a duplicate, as their beginnings show.
    distinct: Sequence[ToHash] = ()
    prefixes: list[Hashed] = field(default_factory=list)
    # Files of roots that are not there: left as they are, for the next run.
    left: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # Object by object, to send what came of small files would take as long as to open them.
        columns = _columns(self.hashed), _columns(self.prefixes)
        return _of_columns, (*columns, self.unhashed, self.distinct, self.left)


def _columns(hashed: Sequence[Hashed]) -> tuple[list[Any], ...]:
    """Return files with their hashes by columns, without their paths: those do not matter now."""
    files = [one.file for one in hashed]
    return (
        [file.file_id for file in files],
        [file.size_bytes for file in files],
        [file.mtime_ns for file in files],
        [file.algorithm for file in files],
        [one.digest for one in hashed],
    )


def _of_columns(
    hashed: tuple[list[Any], ...], prefixes: tuple[list[Any], ...], *others: Any
) -> HashResult:
    whole, beginnings = (
        [
            Hashed(ToHash(file_id, b"", b"", size_bytes, mtime_ns, algorithm), digest)
            for file_id, size_bytes, mtime_ns, algorithm, digest in zip(*columns, strict=True)
        ]
        for columns in (hashed, prefixes)
    )
    unhashed, distinct, left = others
    return HashResult(whole, unhashed, distinct, beginnings, left)


@dataclass(frozen=True)
class ProbeTask:
    """Take some time and some space."""

    seconds: float
    scratch_bytes: int
    items: int  # what it counts as when it is done


@dataclass(frozen=True)
class Executor:
    """How a kind of work is done: read the task, do it, write what came of it."""

    prepare: Callable[..., Any]
    run: Callable[[Any, Context], Any]
    record: Callable[..., None]
    # The write paths that `record` takes; nothing else can be written when the work is done.
    paths: tuple[Any, ...] = ()
