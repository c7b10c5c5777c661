"""Many files are hashed in batches, with the same results as one by one."""

import os
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3

from data_plane.batches import answer_files
from data_plane.digests import Answer
from data_plane.executor import Cancelled, Control, HashResult, ToHash
from data_plane.executors import hash as hash_executor
from data_plane.executors.hash import (
    AT_ONCE_BYTES,
    BATCH_FILES,
    MANY_BYTES,
    MANY_FILES,
    hash_files,
)
from data_plane.jail import Jail
from mediaplane.protocol.values import HashAlgorithm
from tests.support.scanning import context

FILES = 2 * BATCH_FILES + 10


@pytest.fixture
def files(tmp_path: Path) -> list[ToHash]:
    """More than two batches of small files, and one in their midst that is for no batch."""
    made = []
    for number in range(FILES):
        size = AT_ONCE_BYTES + 1 if number == FILES // 2 else number * 7
        path = tmp_path / f"{number:04}"
        path.write_bytes(number.to_bytes(4, "big") * (size // 4 + 1))
        made.append(as_scanned(tmp_path, path.name.encode(), number))
    return made


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each batch has."""
    sent: list[int] = []

    def counting(jail: Jail, batch: Iterable[ToHash]) -> Generator[list[Answer], None, None]:
        asked = list(batch)
        sent.append(len(asked))
        return answer_files(jail, asked)

    monkeypatch.setattr(hash_executor, "answer_files", counting)
    return sent


def as_scanned(root: Path, rel: bytes, file_id: int) -> ToHash:
    info = os.lstat(os.path.join(bytes(root), rel))
    return ToHash(file_id, bytes(root), rel, info.st_size, info.st_mtime_ns, HashAlgorithm.BLAKE3)


def hashed(files: list[ToHash], control: Control | None = None) -> HashResult:
    return hash_files(files, context(control))


def digests(files: list[ToHash]) -> dict[int, bytes]:
    return {
        file.file_id: blake3(
            Path(os.fsdecode(file.root), os.fsdecode(file.rel_path)).read_bytes()
        ).digest()
        for file in files
    }


def test_many_files_are_hashed_in_batches(files: list[ToHash], batches: list[int]) -> None:
    control = Control()
    result = hashed(files, control)
    assert {one.file.file_id: one.digest for one in result.hashed} == digests(files)
    assert (result.unhashed, result.left) == ([], 0)
    assert (control.items, control.bytes) == (FILES, sum(file.size_bytes for file in files))
    # The large one is read by itself, so that somebody is told how far it is.
    assert batches == [BATCH_FILES, BATCH_FILES, FILES - 1 - 2 * BATCH_FILES]


def test_few_files_are_hashed_one_by_one(files: list[ToHash], batches: list[int]) -> None:
    few = files[: MANY_FILES - 1]
    assert {one.file.file_id for one in hashed(few).hashed} == {file.file_id for file in few}
    assert batches == []


def test_work_that_is_cancelled_ends_between_two_batches(files: list[ToHash]) -> None:
    class Fickle(Control):
        def check(self) -> None:
            if self.items == BATCH_FILES:
                self.cancelled.set()
            super().check()

    control = Fickle()
    with pytest.raises(Cancelled):
        hashed(files, control)
    assert control.items == BATCH_FILES


def test_under_a_budget_large_files_are_paid_for_by_the_megabyte(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).write_bytes(name.encode() * (MANY_BYTES // 9 + 1))
    files = [as_scanned(tmp_path, name, at) for at, name in enumerate((b"one", b"two", b"three"))]
    paid: list[int] = []
    limited = replace(context(), spend=paid.append, is_limited=True)
    assert len(hash_files(files, limited).hashed) == 3
    assert max(paid) <= 1 << 20
    assert sum(paid) == sum(file.size_bytes for file in files)


def test_a_file_of_a_batch_that_has_changed_or_is_gone_gets_no_hash(
    files: list[ToHash], tmp_path: Path
) -> None:
    (tmp_path / "0003").write_bytes(b"other")
    (tmp_path / "0005").unlink()
    (tmp_path / "0007").unlink()
    (tmp_path / "0007").symlink_to("0008")
    result = hashed(files)
    assert {one.file.file_id: one.code for one in result.unhashed} == {
        3: "changed",
        5: "not_found",
        7: "refused_symlink",
    }
    assert len(result.hashed) == FILES - 3


def test_files_of_several_libraries_that_come_in_turns_are_batched_by_library(
    tmp_path: Path, batches: list[int]
) -> None:
    files = []
    for number in range(2 * MANY_FILES):
        root = tmp_path / ("one", "two")[number % 2]
        root.mkdir(exist_ok=True)
        (root / str(number)).write_bytes(b"%d" % number)
        files.append(as_scanned(root, b"%d" % number, number))
    result = hashed(files)
    assert {one.file.file_id: one.digest for one in result.hashed} == digests(files)
    assert batches == [MANY_FILES, MANY_FILES]
