"""Shards that are large enough are done by processes of their own, with the same results."""

import errno
import os
import pickle
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from sqlalchemy import make_url
from sqlalchemy import select as select_rows

from data_plane import hashers as hashers_module
from data_plane.executor import (
    Cancelled,
    Control,
    Hashed,
    HashResult,
    Interrupted,
    LeaseLost,
    ToHash,
    Unhashed,
)
from data_plane.executors.hash import MANY_BYTES, MANY_FILES
from data_plane.hasher_messages import Done, Station
from data_plane.hashers import Hasher, HasherLost, Hashers, NotDone, is_worth_it
from data_plane.io_budget import HASHING
from data_plane.leases import Held
from data_plane.settings import DataSettings
from mediaplane.protocol.database import Database
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.tables import io_rate_limits
from mediaplane.protocol.values import HashAlgorithm, JobKind
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.scanning import put
from tests.support.waiting import eventually, must_not_block

HUGE = 1 << 40
FILES = MANY_FILES + 6

pytestmark = pytest.mark.usefixtures("loops")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """As many small files as are worth a process, some with names that are not text."""
    for number in range(FILES):
        put(tmp_path, name_of(number), b"%d" % number * 99)
    return tmp_path


def name_of(number: int) -> bytes:
    return b"%d/\xff\n%d" % (number % 3, number)


@pytest.fixture
def hashers(database: Databases) -> Iterator[Hashers]:
    with must_not_block():
        made = hashers_of(database.data)
        yield made
        made.close()


def hashers_of(database: Database, **settings: Any) -> Hashers:
    return Hashers(Station(database.url, DataSettings(**settings)))


def scanned(desk: Desk, database: Databases, root: Path) -> None:
    desk.add_library(root, hash_policy="all")
    with Worker(database.data, "scanner"):
        assert desk.run(JobKind.SCAN)["status"] == "completed"


def shard(desk: Desk) -> Held:
    """Return the only shard of a new hash job, as if it had been claimed."""
    (row,) = desk.items(desk.create(JobKind.HASH))
    lessee = Lessee(row["id"], "worker", 1)
    return Held(JOB_ITEMS, row, lessee, Control(), kind=JobKind.HASH)


def digests(root: Path) -> dict[bytes, bytes]:
    return {
        os.path.relpath(path, root).encode(errors="surrogateescape"): blake3(
            path.read_bytes()
        ).digest()
        for path in root.rglob("*")
        if path.is_file()
    }


def by_name(desk: Desk, result: HashResult) -> dict[bytes, bytes]:
    names = {row["id"]: name for name, row in desk.files().items()}
    return {names[file.file_id]: digest for file, digest in result.hashed}


def the_idle(hashers: Hashers) -> Hasher:
    (hasher,) = hashers._idle
    return hasher


def is_gone(process: int) -> bool:
    """Tell of a process, by its descriptor, whether it has ended."""
    return bool(select.select([process], [], [], 0)[0])


def own_descriptor(hasher: Hasher) -> int:
    """Return a descriptor of its process that stays open when the hasher is closed."""
    assert hasher._process is not None
    return os.dup(hasher._process)


def send(hasher: Hasher, number: signal.Signals) -> None:
    assert hasher._process is not None
    signal.pidfd_send_signal(hasher._process, number)


def test_a_job_whose_shard_is_large_enough_is_done_by_one_other_process(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    with Worker(database.data, hashers=hashers):
        job = desk.run(JobKind.HASH)
        assert (job["status"], job["processed_items"]) == ("completed", FILES)
        found = {name: row["content_hash"] for name, row in desk.files().items()}
        assert found == digests(root)
        process = the_idle(hashers)
        put(root, name_of(0), b"another content")
        desk.run(JobKind.SCAN)
        (item,) = desk.items(desk.run(JobKind.HASH)["id"])
        assert item["total_items"] == 1, "too little for another process"
        assert desk.run(JobKind.VERIFY)["status"] == "completed"
    assert the_idle(hashers) is process
    assert desk.files()[name_of(0)]["content_hash"] == blake3(b"another content").digest()


def test_what_a_process_returns_is_what_the_worker_would_have_found(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    ids = {name: row["id"] for name, row in desk.files().items()}
    (root / os.fsdecode(name_of(1))).unlink()
    (root / os.fsdecode(name_of(2))).write_bytes(b"changed since")
    held = shard(desk)
    result = hashers.run(held)
    assert {one.file.file_id: one.code for one in result.unhashed} == {
        ids[name_of(1)]: "not_found",
        ids[name_of(2)]: "changed",
    }
    expected = digests(root)
    del expected[name_of(2)]
    assert by_name(desk, result) == expected
    assert (held.control.items, result.left) == (FILES, 0)
    assert held.control.bytes == held.row["total_bytes"]


def test_a_verify_job_is_done_by_another_process_as_well(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    with Worker(database.data, hashers=hashers):
        desk.run(JobKind.HASH)
        path = root / os.fsdecode(name_of(5))
        before = path.stat()
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert desk.run(JobKind.VERIFY)["status"] == "completed"
    errors = {name: row["error_code"] for name, row in desk.files().items() if row["error_code"]}
    assert list(errors) == [name_of(5)]
    assert the_idle(hashers)._process is not None


@pytest.mark.parametrize(
    ("row", "is_large"),
    [
        ({"total_items": MANY_FILES, "total_bytes": 0}, True),
        ({"total_items": MANY_FILES - 1, "total_bytes": MANY_BYTES - 1}, False),
        ({"total_items": 1, "total_bytes": MANY_BYTES}, True),
        ({"item_key": "prefix-1-9", "total_items": None, "total_bytes": None}, True),
    ],
)
def test_a_shard_is_worth_a_process_by_its_files_or_its_bytes(
    row: dict[str, Any], is_large: bool
) -> None:
    row = {"item_key": "files-1-9", **row}
    lessee, control = Lessee(1, "worker", 1), Control()
    for kind in (JobKind.HASH, JobKind.VERIFY):
        assert is_worth_it(Held(JOB_ITEMS, row, lessee, control, kind=kind)) is is_large
        assert not is_worth_it(Held(JOBS, row, lessee, control, kind=kind))
    assert not is_worth_it(Held(JOB_ITEMS, row, lessee, control, kind=JobKind.PROBE))


def test_few_small_files_need_no_other_process(
    desk: Desk, database: Databases, tmp_path: Path, hashers: Hashers
) -> None:
    put(tmp_path, b"file", b"1")
    scanned(desk, database, tmp_path)
    with Worker(database.data, hashers=hashers):
        assert desk.run(JobKind.HASH)["status"] == "completed"
    assert hashers._nursery is None


def test_what_a_lost_process_had_is_hashed_without_it(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    hashers.run(shard(desk))
    lost = the_idle(hashers)
    send(lost, signal.SIGSTOP)
    threading.Timer(0.1, send, (lost, signal.SIGKILL)).start()
    with Worker(database.data, hashers=hashers):
        job = desk.wait_for(max_job(desk), "completed")
    assert job["processed_items"] == FILES
    assert {name: row["content_hash"] for name, row in desk.files().items()} == digests(root)
    assert lost not in hashers._idle


def test_a_process_that_was_lost_while_it_was_idle_is_replaced(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    held = shard(desk)
    hashers.run(held)
    lost = the_idle(hashers)
    process = own_descriptor(lost)
    send(lost, signal.SIGKILL)
    assert eventually(lambda: is_gone(process) and lost.is_gone)
    os.close(process)
    assert by_name(desk, hashers.run(held)) == digests(root)
    assert the_idle(hashers) is not lost


def max_job(desk: Desk) -> int:
    with desk.database.read() as conn:
        found: int = conn.exec_driver_sql("SELECT max(id) FROM jobs").scalar_one()
    return found


def test_what_a_process_cannot_do_is_for_the_worker_to_do(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    held = shard(desk)
    broken = Held(held.machine, {**held.row, "payload": {}}, held.lessee, Control(), kind=held.kind)
    with pytest.raises(NotDone) as raised:
        hashers.run(broken)
    assert not isinstance(raised.value, HasherLost)
    process = the_idle(hashers)
    assert by_name(desk, hashers.run(held)) == digests(root)
    assert the_idle(hashers) is process


def test_a_library_that_is_away_is_told_by_the_worker_in_few_words(
    desk: Desk,
    database: Databases,
    root: Path,
    hashers: Hashers,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    scanned(desk, database, root)
    with Worker(database.data, hashers=hashers):
        assert desk.run(JobKind.HASH)["status"] == "completed"
        root.rename(root.with_name(f"{root.name}-away"))
        assert desk.run(JobKind.VERIFY)["status"] == "failed"
    assert "lost" not in caplog.text
    assert capfd.readouterr().err == ""


class Stage:
    """In place of a nursery: what its forks say is up to the test."""

    def __init__(self) -> None:
        self.line: socket.socket | None = None

    def fork(self, line: socket.socket) -> None:
        self.line = line.dup()


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    if stage.line:
        stage.line.close()


def played(stage: Any) -> tuple[Hasher, socket.socket, Held]:
    hasher = Hasher(stage, Station(make_url("sqlite://"), DataSettings()))
    held = Held(JOB_ITEMS, {}, Lessee(1, "worker", 1), Control(), kind=JobKind.HASH)
    return hasher, stage.line, held


def test_where_processes_have_no_descriptors_shards_are_done_all_the_same(stage: Stage) -> None:
    hasher, line, held = played(stage)
    line.send(b".")
    messages: Connection = Connection(os.dup(line.fileno()))
    messages.send(Done(3, 4, "result"))
    assert hasher.run(held) == "result"
    assert (held.control.items, held.control.bytes, hasher._process) == (3, 4, None)
    messages.close()
    hasher.close()


def test_a_message_that_never_ends_is_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashers_module, "_MESSAGE_SECONDS", 1)
    hasher, line, held = played(stage)
    line.send(b"." + (1000).to_bytes(4, "big") + b"a beginning")
    with must_not_block(), pytest.raises(HasherLost):
        hasher.run(held)
    hasher.close()


def test_when_no_process_can_be_started_shards_are_done_without(
    desk: Desk,
    database: Databases,
    root: Path,
    hashers: Hashers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned(desk, database, root)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(hashers_module, "_Nursery", refuse)
    hashers.prepare(2)
    with Worker(database.data, hashers=hashers):
        assert desk.run(JobKind.HASH)["processed_items"] == FILES
    assert hashers._nursery is None


@pytest.mark.parametrize(
    ("name", "raised"),
    [("cancelled", Cancelled), ("lost", LeaseLost), ("interrupted", Interrupted)],
)
def test_work_that_is_to_end_does_not_wait_for_the_other_process(
    name: str,
    raised: type[Exception],
    desk: Desk,
    database: Databases,
    root: Path,
    hashers: Hashers,
) -> None:
    scanned(desk, database, root)
    held = shard(desk)
    hashers.run(held)
    stopped = the_idle(hashers)
    process = own_descriptor(stopped)
    send(stopped, signal.SIGSTOP)  # it would never answer
    threading.Timer(0.1, getattr(held.control, name).set).start()
    with pytest.raises(raised):
        hashers.run(held)
    assert eventually(lambda: is_gone(process))
    os.close(process)
    again = Held(held.machine, held.row, held.lessee, Control(), kind=held.kind)
    assert by_name(desk, hashers.run(again)) == digests(root)


def test_it_is_told_how_far_a_large_file_is(
    desk: Desk, database: Databases, tmp_path: Path, hashers: Hashers
) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(HUGE)
    scanned(desk, database, tmp_path)
    held = shard(desk)

    def cancel_later() -> None:
        eventually(lambda: held.control.bytes > 0)
        held.control.cancelled.set()

    threading.Thread(target=cancel_later, daemon=True).start()
    with pytest.raises(Cancelled):
        hashers.run(held)
    assert 0 < held.control.bytes < HUGE


def test_processes_pay_from_the_budget_of_all_workers(
    desk: Desk, database: Databases, root: Path
) -> None:
    rate, size_bytes = 1 << 20, 8192
    for number in range(FILES):
        put(root, name_of(number), b"x" * size_bytes)
    scanned(desk, database, root)
    held = shard(desk)
    began_ms = time.time() * 1000
    for _process in range(2):
        limited = hashers_of(database.data, hash_bytes_per_second=rate)
        assert len(limited.run(held).hashed) == FILES
        limited.close()
    with database.data.read() as conn:
        (bucket,) = conn.execute(select_rows(io_rate_limits)).mappings()
    assert bucket["bucket_key"] == HASHING
    assert bucket["next_available_at_ms"] - began_ms > 2 * 1000 * FILES * size_bytes / rate


def test_a_process_opens_only_what_its_worker_may(
    desk: Desk, database: Databases, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scanned(desk, database, root)
    elsewhere = str(tmp_path_factory.mktemp("elsewhere"))
    for allowed, hashed in ((str(root), FILES), (elsewhere, 0)):
        confined = hashers_of(database.data, roots=allowed)
        held = shard(desk)
        result = confined.run(held)
        confined.close()
        assert (len(result.hashed), result.left) == (hashed, FILES - hashed)
        desk.change("UPDATE jobs SET status = 'cancelled' WHERE kind = 'hash'")


def test_another_folder_in_place_of_the_library_is_not_hashed(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    held = shard(desk)
    root.rename(root.with_name(f"{root.name}-away"))
    for number in range(FILES):
        put(root, name_of(number), b"other")
    assert hashers.run(held) == HashResult(distinct=[], left=FILES)


def test_processes_are_ready_for_files_that_are_expected(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    hashers.prepare(2)
    hashers.prepare(2)  # they are there
    ready = set(hashers._idle)
    assert len(ready) == 2
    hashers.run(shard(desk))
    assert set(hashers._idle) == ready
    using = hashers._idle.pop()
    hashers._busy = 1
    hashers.prepare(2)
    assert len(hashers._idle) == 1, "one of them is in use"
    hashers._busy = 0
    using.close()


def test_the_code_is_loaded_before_there_is_anything_to_hash(hashers: Hashers) -> None:
    hashers.start()
    nursery = hashers._nursery
    assert nursery is not None
    assert nursery.is_alive
    hashers.prepare(1)
    assert hashers._nursery is nursery


def test_processes_end_when_there_was_nothing_to_hash_for_a_while(
    desk: Desk,
    database: Databases,
    root: Path,
    hashers: Hashers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned(desk, database, root)
    held = shard(desk)
    hashers.run(held)
    process = own_descriptor(the_idle(hashers))
    hashers.tidy()
    assert not is_gone(process), "too early"
    monkeypatch.setattr(hashers_module, "_IDLE_SECONDS", 0)
    hashers.tidy()
    assert eventually(lambda: is_gone(process))
    os.close(process)
    assert by_name(desk, hashers.run(held)) == digests(root)


def close_line(hashers: Hashers) -> None:
    """What the system does for a worker that is killed."""
    idle = the_idle(hashers)
    idle._messages.close()
    idle._line.close()
    assert hashers._nursery is not None
    hashers._nursery._line.close()


@pytest.mark.parametrize("end", [close_line, Hashers.close], ids=["killed", "stopped"])
def test_processes_end_with_their_worker(
    end: Callable[[Hashers], None], desk: Desk, database: Databases, root: Path
) -> None:
    scanned(desk, database, root)
    hashers = hashers_of(database.data)
    hashers.run(shard(desk))
    process = own_descriptor(the_idle(hashers))
    nursery = hashers._nursery
    assert nursery is not None
    end(hashers)
    assert eventually(lambda: is_gone(process))
    assert eventually(lambda: not nursery.is_alive)
    os.close(process)


def test_a_process_at_work_ends_with_its_worker(
    desk: Desk, database: Databases, tmp_path: Path
) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(HUGE)
    scanned(desk, database, tmp_path)
    hashers = hashers_of(database.data)
    hashers.prepare(1)
    working = the_idle(hashers)
    held = shard(desk)
    working._messages.send((held.kind, dict(held.row)))
    assert working._receive(lambda: None).bytes >= 0
    process = own_descriptor(working)
    working._messages.close()
    working._line.close()
    assert eventually(lambda: is_gone(process))
    os.close(process)
    hashers._idle.clear()
    hashers.close()


def test_no_process_is_left_for_others_to_wait_for(
    desk: Desk, database: Databases, root: Path
) -> None:
    scanned(desk, database, root)
    hashers = hashers_of(database.data)
    hashers.prepare(3)
    hashers.run(shard(desk))
    assert hashers._nursery is not None
    tasks = Path(f"/proc/{hashers._nursery._process.pid}/task")
    eventually(lambda: len(children(tasks)) == 3)
    forks = children(tasks)
    hashers.close()
    assert [fork for fork in forks if Path("/proc", fork).exists()] == []


def children(tasks: Path) -> list[str]:
    return [pid for listed in tasks.glob("*/children") for pid in listed.read_text().split()]


def test_after_the_end_of_the_worker_no_process_is_started(
    desk: Desk, database: Databases, root: Path
) -> None:
    scanned(desk, database, root)
    hashers = hashers_of(database.data)
    hashers.close()
    hashers.prepare(1)
    with pytest.raises(HasherLost):
        hashers.run(shard(desk))
    assert hashers._nursery is None


def test_the_loss_of_the_nursery_costs_the_processes_it_has_made_nothing(
    desk: Desk, database: Databases, root: Path, hashers: Hashers
) -> None:
    scanned(desk, database, root)
    held = shard(desk)
    hashers.run(held)
    process, nursery = the_idle(hashers), hashers._nursery
    assert nursery is not None
    nursery._process.kill()
    nursery._process.wait()
    assert by_name(desk, hashers.run(held)) == digests(root)
    assert the_idle(hashers) is process
    hashers.prepare(2)
    assert hashers._nursery is not nursery
    assert by_name(desk, hashers.run(held)) == digests(root)


def test_a_result_is_sent_without_what_does_not_matter_any_more() -> None:
    files = [ToHash(n, b"/root", b"%d" % n, n, n + 1, HashAlgorithm.SHA256) for n in range(4)]
    result = HashResult(
        [Hashed(files[0], b"0" * 32)],
        [Unhashed(files[1], "changed", "It has changed.")],
        [files[2]],
        [Hashed(files[3], b"3" * 32)],
        5,
    )
    sent = pickle.loads(pickle.dumps(result))
    result.hashed = [Hashed(files[0]._replace(root=b"", rel_path=b""), b"0" * 32)]
    result.prefixes = [Hashed(files[3]._replace(root=b"", rel_path=b""), b"3" * 32)]
    assert sent == result
