"""Files are hashed in batches by processes of their own, with the same results."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3

from data_plane import hashers
from data_plane.executor import Cancelled, Control, Hashed, HashResult, ToHash
from data_plane.executors.hash import (
    AT_ONCE_BYTES,
    BATCH_FILES,
    MANY_BYTES,
    MANY_FILES,
    hash_files,
)
from data_plane.hashers import Hasher, hash_elsewhere
from data_plane.jail import Jail
from mediaplane.protocol.values import HashAlgorithm
from tests.support.scanning import context
from tests.support.waiting import eventually

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


@pytest.fixture(autouse=True)
def own_hasher() -> Iterator[None]:
    """Each test begins without a process, and leaves none behind."""
    end_idle()
    yield
    end_idle()


def end_idle() -> None:
    while hashers._idle:
        hashers._idle.pop().close()


def the_process() -> subprocess.Popen[bytes]:
    """The one process that hashes, while nobody uses it."""
    (hasher,) = hashers._idle
    return hasher.process


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


def test_many_small_files_are_hashed_by_one_other_process(files: list[ToHash]) -> None:
    control = Control()
    result = hashed(files, control)
    assert {one.file.file_id: one.digest for one in result.hashed} == digests(files)
    assert (result.unhashed, result.left) == ([], 0)
    assert (control.items, control.bytes) == (FILES, sum(file.size_bytes for file in files))
    process = the_process()
    assert process.poll() is None
    hashed(files)
    assert the_process() is process


def test_few_small_files_need_no_other_process(files: list[ToHash]) -> None:
    few = files[: MANY_FILES - 1]
    assert {one.file.file_id for one in hashed(few).hashed} == {file.file_id for file in few}
    assert not hashers._idle


def test_few_files_are_worth_another_process_when_there_is_much_to_read(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).write_bytes(name.encode() * (MANY_BYTES // 9 + 1))
    files = [as_scanned(tmp_path, name, at) for at, name in enumerate((b"one", b"two", b"three"))]
    result = hashed(files)
    assert {one.file.file_id: one.digest for one in result.hashed} == digests(files)
    assert the_process().poll() is None


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


def test_names_that_are_not_text_survive_the_way_to_the_other_process(tmp_path: Path) -> None:
    names = [b"\xff\n%d" % number for number in range(MANY_FILES)]
    for name in names:
        Path(os.fsdecode(os.path.join(bytes(tmp_path), name))).write_bytes(name)
    files = [as_scanned(tmp_path, name, number) for number, name in enumerate(names)]
    assert [one.digest for one in hashed(files).hashed] == [blake3(name).digest() for name in names]


def test_processes_are_ready_for_files_that_are_expected(files: list[ToHash]) -> None:
    hashers.prepare(2)
    hashers.prepare(2)  # they are there
    started = {hasher.process.pid for hasher in hashers._idle}
    assert len(started) == 2
    with Jail(files[0].root) as jail:
        using = hash_elsewhere([(jail, files[:3])], lambda: None)
        next(using)
        hashers.prepare(2)  # one of them is in use
        assert len(hashers._idle) == 1
        using.close()
    hashed(files)
    assert the_process().pid in started


def test_what_a_lost_process_had_is_hashed_without_it(files: list[ToHash]) -> None:
    hashed(files)
    lost = the_process()
    lost.send_signal(signal.SIGKILL)
    lost.wait()
    result = hashed(files)
    assert {one.file.file_id: one.digest for one in result.hashed} == digests(files)
    assert the_process() is not lost  # the next batch has a new one


def test_work_that_is_cancelled_does_not_wait_for_the_other_process(files: list[ToHash]) -> None:
    hashed(files)
    process, control = the_process(), Control()
    process.send_signal(signal.SIGSTOP)  # it would never answer
    threading.Timer(0.1, control.cancelled.set).start()
    with pytest.raises(Cancelled):
        hashed(files, control)
    assert process.poll() is not None
    assert len(hashed(files).hashed) == FILES


def test_answers_that_nobody_waits_for_are_not_taken_for_others(
    files: list[ToHash], tmp_path: Path
) -> None:
    with Jail(bytes(tmp_path)) as jail:
        batches = [(jail, files[start : start + 3]) for start in range(0, 9, 3)]
        left = hash_elsewhere(batches, lambda: None)
        assert len(next(left)) == 3  # the answers to the second batch are on their way
        (others,) = hash_elsewhere([(jail, files[20:23])], lambda: None)
        left.close()
    expected = digests(files[20:23])
    assert others == [Hashed(file, expected[file.file_id]) for file in files[20:23]]


def test_a_process_ends_with_whoever_started_it(files: list[ToHash], tmp_path: Path) -> None:
    hasher = Hasher()
    with Jail(bytes(tmp_path)) as jail:
        hasher.send(jail, files[:1])
        assert hasher.receive(lambda: None) == [digests(files)[0]]
    hasher._messages.close()
    hasher._line.close()
    assert eventually(lambda: hasher.process.poll() is not None)
    assert hasher.process.returncode == 0


def test_the_root_is_the_one_that_was_opened_wherever_it_has_gone(
    files: list[ToHash], tmp_path: Path
) -> None:
    hasher = Hasher()
    try:
        with Jail(bytes(tmp_path)) as jail:
            moved = tmp_path.with_name("moved")
            tmp_path.rename(moved)
            tmp_path.mkdir()
            (tmp_path / "0000").write_bytes(b"in its place")
            hasher.send(jail, files[:1])
            (digest,) = hasher.receive(lambda: None)
    finally:
        hasher.close()
    assert digest == blake3((moved / "0000").read_bytes()).digest()


def test_files_of_several_libraries_that_come_in_turns_are_batched_by_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for number in range(2 * MANY_FILES):
        root = tmp_path / ("one", "two")[number % 2]
        root.mkdir(exist_ok=True)
        (root / str(number)).write_bytes(b"%d" % number)
        files.append(as_scanned(root, b"%d" % number, number))
    sent: list[int] = []
    send = Hasher.send

    def counting(
        hasher: Hasher, jail: Jail, batch: Sequence[ToHash], *, ends: bool = False
    ) -> None:
        sent.append(len(batch))
        send(hasher, jail, batch, ends=ends)

    monkeypatch.setattr(Hasher, "send", counting)
    result = hashed(files)
    assert {one.file.file_id: one.digest for one in result.hashed} == digests(files)
    assert sent == [MANY_FILES, MANY_FILES]
