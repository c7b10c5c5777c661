"""Reads hashed files again and tells which are damaged: other content in the same state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from data_plane.executor import Context, Fail, HashResult, ToHash
from data_plane.executors.hash import hash_files
from data_plane.roots import Root, recognising

# A file that is not in the state of the last scan is for the next scan to tell about.
_OUTDATED = ("changed", "not_found")


class Known(NamedTuple):
    """A hashed file with its hash, and whether something was wrong with it before."""

    file: ToHash
    digest: bytes
    has_error: bool = False


@dataclass(frozen=True)
class VerifyTask:
    """Verify a shard of files, all of one library."""

    files: Sequence[Known]
    # The folder of the library, as it was at its last scan.
    roots: Sequence[Root] = ()


class Verdict(NamedTuple):
    """What is to be noted of a file; without a code, that it is sound again."""

    known: Known
    code: str | None = None
    message: str | None = None


def verify(task: VerifyTask, ctx: Context) -> list[Verdict]:
    """Hash every file that still is as it was scanned, and compare."""
    ctx = replace(ctx, open_jail=recognising(task.roots, ctx.open_jail))
    result = hash_files([known.file for known in task.files], ctx)
    if result.left:
        raise Fail(
            "root_unavailable",
            f"{result.left} files were not verified because their library's folder is not there, or"
            " is another one than at its last scan. Is its disk mounted? If so, scan it first.",
        )
    # What could not be compared was not verified: the job counts the rest.
    ctx.control.items -= len(result.unhashed)
    known = {one.file.file_id: one for one in task.files}
    return list(_verdicts(known, result))


def _verdicts(known: dict[int, Known], result: HashResult) -> Iterator[Verdict]:
    for file, digest in result.hashed:
        one = known[file.file_id]
        if digest != one.digest:
            yield _damaged(one)
        elif one.has_error:
            yield Verdict(one)
    for file, code, message in result.unhashed:
        if code not in _OUTDATED:
            yield Verdict(known[file.file_id], code, message)


def _damaged(known: Known) -> Verdict:
    return Verdict(
        known,
        "bit_rot",
        "Its content is not what it was, although size and time of change are. Restore it from a"
        " backup or another copy and verify again; the hash that it had is kept.",
    )
