"""Cuts the files of a job into shards, which many workers share."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from mediaplane.protocol.kinds import ANY_BYTES

# A shard ends at whichever comes first: large enough that its bookkeeping does not count (SQLite
# writes most of the index of hashes anew with each), small enough that a worker which dies loses
# little, and that nobody waits long until its results are written. The first are smaller: workers
# share a small library as well, and come to an end at about the same time.
SHARD_FILES = 16_000
SHARD_BYTES = 256 << 20
_FIRST_FILES = 6000
_GROWTH = 4
# Of very much a shard may be this part, so that all of them can be added at once.
_PART = 1000

# Id and size.
File = tuple[int, int]
# Files that follow each other: the first id, the last one, how many they are and how many bytes.
Run = tuple[int, int, int, int]


def is_one(files: int, size_bytes: int) -> bool:
    """Tell whether so many files of one size, with so many bytes in all, stay in one shard."""
    return files == 1 or (files <= SHARD_FILES and size_bytes <= SHARD_BYTES)


class Shard(NamedTuple):
    """The files of a job whose ids and sizes lie in these ranges, ends included."""

    first_id: int
    last_id: int
    smallest_bytes: int
    largest_bytes: int
    files: int
    size_bytes: int


class Room:
    """What a shard may hold, which grows with what the shards before it hold."""

    def __init__(self, most_files: int) -> None:
        self._most_files = most_files
        self._done_files = self._done_bytes = 0

    @property
    def files(self) -> int:
        """Files with which a shard ends."""
        usual = min(self._most_files, _FIRST_FILES + self._done_files // _GROWTH)
        return max(usual, self._done_files // _PART)

    @property
    def size_bytes(self) -> int:
        """Bytes with which a shard ends."""
        return max(SHARD_BYTES, self._done_bytes // _PART)

    def is_filled(self, files: int, size_bytes: int) -> bool:
        """Tell whether a shard with so much in it is to end."""
        return files >= self.files or size_bytes >= self.size_bytes

    def passed(self, shard: Shard) -> Shard:
        """Count a shard that has ended."""
        self._done_files += shard.files
        self._done_bytes += shard.size_bytes
        return shard


def by_id(
    runs: Iterable[Run], sizes: tuple[int, int] = (0, ANY_BYTES), room: Room | None = None
) -> Iterator[Shard]:
    """Yield shards of files that come in the order of their ids, with sizes of this range.

    No run of them is cut.
    """
    room = room or Room(SHARD_FILES)
    first_id = last_id = count = size_bytes = 0
    # Asked for once a shard: there may be millions of files.
    most_files, most_bytes = room.files, room.size_bytes
    for run_first_id, last_id, run_count, run_bytes in runs:
        if not count:
            first_id = run_first_id
        count += run_count
        size_bytes += run_bytes
        if count >= most_files or size_bytes >= most_bytes:
            yield room.passed(Shard(first_id, last_id, *sizes, count, size_bytes))
            count = size_bytes = 0
            most_files, most_bytes = room.files, room.size_bytes
    if count:
        yield room.passed(Shard(first_id, last_id, *sizes, count, size_bytes))


def one_by_one(files: Iterable[File]) -> Iterator[Run]:
    """Yield each file as a run of its own."""
    return ((file_id, file_id, 1, size_bytes) for file_id, size_bytes in files)


def by_size(files: Iterable[File]) -> Iterator[Shard]:
    """Yield shards of files that come in the order of their sizes, those of one size in one shard.

    So copies are read side by side, and hashed once. Very many or very large files of one size are
    shared by several workers instead.
    """
    room = Room(SHARD_FILES)
    held: list[File] = []
    size_bytes = 0
    for file_bytes, run in groupby(files, key=itemgetter(1)):
        alike = list(run)
        is_shared = len(alike) > max(SHARD_FILES, room.files) or (
            len(alike) > 1 and file_bytes * len(alike) > room.size_bytes
        )
        # The sizes of a shard have no other one between them that is not in it.
        if held and (is_shared or room.is_filled(len(held), size_bytes)):
            yield room.passed(_of(held, size_bytes))
            held, size_bytes = [], 0
        if is_shared:
            yield from by_id(one_by_one(alike), (file_bytes, file_bytes), room)
        else:
            held += alike
            size_bytes += file_bytes * len(alike)
    if held:
        yield _of(held, size_bytes)


def _of(files: list[File], size_bytes: int) -> Shard:
    ids = [file_id for file_id, _bytes in files]
    return Shard(min(ids), max(ids), files[0][1], files[-1][1], len(files), size_bytes)
