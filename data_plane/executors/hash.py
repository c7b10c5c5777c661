"""Hashes the files of a shard; a file that changes meanwhile never gets a hash."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from math import inf
from operator import attrgetter

from data_plane.batches import answer_files
from data_plane.digests import ENDS, HEAD_BYTES, TAIL_BYTES, Answer, hash_file
from data_plane.executor import (
    Context,
    Hashed,
    HashResult,
    HashTask,
    Marked,
    PrefixTask,
    ToHash,
    Unhashed,
)
from data_plane.file_states import explain
from data_plane.jail import Jail
from data_plane.roots import recognising
from mediaplane.protocol.kinds import SMALL_BYTES

# So much is worth a process of its own (see hashers.py), and batches: less is hashed file by file,
# and larger files are, because somebody wants to know how far they are.
MANY_FILES = 64
MANY_BYTES = 64 << 20
AT_ONCE_BYTES = 64 << 20
BATCH_FILES = 256
BATCH_BYTES = 32 << 20
_ALIKE_BYTES = 256 << 20
# How often to look whether the beginnings of the other files are known.
_EARLY_SECONDS = 0.01

_SIZE = attrgetter("size_bytes")
_ROOT = attrgetter("root")
# As `Hashed._make` does, but without a step of Python.
_hashed = partial(tuple.__new__, Hashed)


def hash_shard(task: HashTask | PrefixTask, ctx: Context) -> HashResult:
    """Hash the files of a shard, or their beginnings."""
    ctx = replace(ctx, open_jail=recognising(task.roots, ctx.open_jail))
    if isinstance(task, PrefixTask):
        return _hash_prefixes(task.files, ctx)
    while task.is_early():
        ctx.control.wait(_EARLY_SECONDS)
    marked = task.read()
    begins = {one.file_id: one.prefix_hash for one in marked.of_their_sizes}
    staged = [file for file in marked.undecided if begins.get(file.file_id) is None]
    prefixes = _hash_prefixes(staged, ctx).prefixes
    alike, alone = tell_apart(marked, prefixes)
    distinct = [*marked.distinct, *alone]
    ctx.control.items += len(distinct)
    ctx.control.bytes += sum(map(_SIZE, distinct))
    # By size, as they are in the shard: copies are read side by side.
    result = hash_files(sorted([*marked.whole, *alike], key=_SIZE) if alike else marked.whole, ctx)
    result.distinct = distinct
    result.prefixes = prefixes
    return result


def _hash_prefixes(files: Sequence[ToHash], ctx: Context) -> HashResult:
    """Hash beginnings; what is wrong with a file will be told when all of it is read."""
    result = HashResult()
    with ExitStack() as stack:
        for one in _end_hashes(files, _Jails(ctx, stack), ctx):
            if isinstance(one, Hashed):
                result.prefixes.append(one)
    return result


def tell_apart(marked: Marked, prefixes: Sequence[Hashed]) -> tuple[list[ToHash], list[ToHash]]:
    """Return which undecided files begin as another of their size does, or may, and the others."""
    begins = {file_id: (size, prefix) for file_id, size, prefix in marked.of_their_sizes}
    # Not of one that is not among them: its rivals would be missing as well.
    begins |= {
        file.file_id: (file.size_bytes, digest)
        for file, digest in prefixes
        if file.file_id in begins
    }
    occurring = Counter(begins.values())
    alike: list[ToHash] = []
    alone: list[ToHash] = []
    for file in marked.undecided:
        begin = begins.get(file.file_id)
        is_alone = begin and occurring[begin] == 1 and not occurring[file.size_bytes, None]
        (alone if is_alone else alike).append(file)
    return alike, alone


def _end_hashes(
    files: Sequence[ToHash], jails: "_Jails", ctx: Context
) -> Iterator[Hashed | Unhashed]:
    ends = [file._replace(algorithm=ENDS) for file in files]
    for jail, batch in _batches(ends, jails):
        with closing(answer_files(jail, batch)) as answers:
            for file, answer in zip(batch, chain.from_iterable(answers), strict=True):
                ctx.control.check()
                ctx.spend(HEAD_BYTES + TAIL_BYTES)
                yield _outcome(file, answer)


def hash_files(files: Sequence[ToHash], ctx: Context) -> HashResult:
    """Hash every file that still is as it was scanned."""
    result = HashResult()
    with ExitStack() as stack:
        for outcomes in _hash(files, _Jails(ctx, stack), ctx):
            result.hashed += [one for one in outcomes if isinstance(one, Hashed)]
            result.unhashed += [one for one in outcomes if isinstance(one, Unhashed)]
    result.left = len(files) - len(result.hashed) - len(result.unhashed)
    return result


def _hash(
    files: Sequence[ToHash], jails: "_Jails", ctx: Context
) -> Iterator[list[Hashed | Unhashed]]:
    # What a batch has read is paid for when it is over.
    at_once_bytes = SMALL_BYTES if ctx.is_limited else AT_ONCE_BYTES
    batched = [file for file in files if file.size_bytes <= at_once_bytes]
    if len(batched) < MANY_FILES and sum(map(_SIZE, batched)) < MANY_BYTES:
        yield from _hash_here(files, jails, ctx)
        return
    for jail, batch in _batches(batched, jails, BATCH_BYTES):
        answers: list[Answer] = []
        with closing(answer_files(jail, batch)) as answered:
            for some in answered:
                ctx.control.check()
                answers += some
        yield _outcomes(batch, answers)
        size_bytes = sum(map(_SIZE, batch))
        ctx.control.items += len(batch)
        ctx.control.bytes += size_bytes
        ctx.spend(size_bytes)
    yield from _hash_here([file for file in files if file.size_bytes > at_once_bytes], jails, ctx)


def _hash_here(
    files: Sequence[ToHash], jails: "_Jails", ctx: Context
) -> Iterator[list[Hashed | Unhashed]]:
    for file in files:
        ctx.control.check()
        if jail := jails.of(file.root):
            done = ctx.control.bytes
            yield [_outcome(file, _answer(file, jail, _telling(ctx)))]
            ctx.control.items += 1
            ctx.control.bytes = done + file.size_bytes


def _outcome(file: ToHash, answer: Answer) -> Hashed | Unhashed:
    return Hashed(file, answer) if isinstance(answer, bytes) else Unhashed(file, *answer)


def _outcomes(files: Sequence[ToHash], answers: Sequence[Answer]) -> list[Hashed | Unhashed]:
    if {bytes}.issuperset(map(type, answers)):
        return list(map(_hashed, zip(files, answers, strict=True)))
    return list(map(_outcome, files, answers))


def _answer(file: ToHash, jail: Jail, read: Callable[[int], None]) -> Answer:
    try:
        descriptor = jail.open_file(file.rel_path)
        return hash_file(descriptor, file.size_bytes, file.mtime_ns, file.algorithm, read)
    except OSError as error:
        return explain(error)


def _batches(
    files: Iterable[ToHash], jails: "_Jails", most_bytes: float = inf
) -> Iterator[tuple[Jail, list[ToHash]]]:
    # In the order of sizes, files of several libraries would come in turns.
    for root, there in groupby(sorted(files, key=_ROOT), key=_ROOT):
        if jail := jails.of(root):
            batch: list[ToHash] = []
            size_bytes = 0
            for file in there:
                is_full = len(batch) >= BATCH_FILES or size_bytes >= most_bytes
                if is_full and not (_is_alike(file, batch[-1]) and size_bytes < _ALIKE_BYTES):
                    yield jail, batch
                    batch, size_bytes = [], 0
                batch.append(file)
                size_bytes += file.size_bytes
            yield jail, batch


def _is_alike(file: ToHash, other: ToHash) -> bool:
    """Tell whether two large files may be copies, which are read side by side."""
    return file.size_bytes == other.size_bytes > SMALL_BYTES


class _Jails:
    """The roots of a shard's files, each opened once."""

    def __init__(self, ctx: Context, stack: ExitStack) -> None:
        self._ctx = ctx
        self._stack = stack
        self._open: dict[bytes, Jail | None] = {}

    def of(self, root: bytes) -> Jail | None:
        """Return a root; None when it is not there, so that its files are left for later."""
        if root not in self._open:
            try:
                self._open[root] = self._stack.enter_context(self._ctx.open_jail(root))
            except OSError:
                self._open[root] = None
        return self._open[root]


def _telling(ctx: Context) -> Callable[[int], None]:
    def read(length: int) -> None:
        ctx.control.bytes += length
        ctx.spend(length)
        ctx.control.check()

    return read
