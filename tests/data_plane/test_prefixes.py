"""Of large files of one size only those that begin alike are read to their end."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from blake3 import blake3
from sqlalchemy import update

from control_plane.policy import hashing, shards
from data_plane import hashing as data_hashing
from data_plane.digests import HEAD_BYTES, TAIL_BYTES
from data_plane.executor import Hashed, HashTask, PrefixTask
from data_plane.executors.hash import tell_apart
from data_plane.hashing import hash_task
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import job_items, library_files
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.files import add_files, add_library, content
from tests.support.planes import Desk, Worker, control_loops

# The smallest size of which the beginning is read first.
LARGE_BYTES = 262_145


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    return root


@pytest.fixture
def worker(database: Databases, loops: None) -> Iterator[Worker]:
    with Worker(database.data, slots=2) as worker:
        yield worker


@pytest.fixture(params=["in one shard", "in a shard each"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of one size compared by whoever has them all, and by several workers."""
    if request.param == "in a shard each":
        monkeypatch.setattr(shards, "SHARD_FILES", 1)


def large(path: Path, head: bytes, tail: bytes = b"", size_bytes: int = LARGE_BYTES) -> None:
    """Make a file that is nothing but its first and its last bytes."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size_bytes - len(tail))
        file.seek(0, os.SEEK_END)
        file.write(tail)


def find_duplicates(desk: Desk) -> Row:
    assert desk.run(JobKind.SCAN)["status"] == "completed"
    return desk.run(JobKind.HASH)


def hashed(desk: Desk) -> set[bytes]:
    return {path for path, row in desk.files().items() if row["content_hash"] is not None}


def test_files_that_begin_otherwise_are_not_read_to_their_end(
    desk: Desk, root: Path, worker: Worker
) -> None:
    # A terabyte each, of holes: nobody would wait for the end of this test.
    for name in ("one", "two", "three"):
        large(root / name, name.encode(), size_bytes=1 << 40)
    desk.add_library(root)
    job = find_duplicates(desk)
    assert job["status"] == "completed"
    figures = [job[f"{name}_items"] for name in ("total", "completed", "processed")]
    assert figures == [3, 3, 3]
    for path, row in desk.files().items():
        assert (row["content_hash"], row["needs_hash"], row["error_code"]) == (None, False, None)
        ends = path + bytes(HEAD_BYTES - len(path) + TAIL_BYTES)
        assert row["prefix_hash"] == blake3(ends).digest()


def test_files_that_differ_in_their_last_byte_alone_are_not_read_in_between(
    desk: Desk, root: Path, worker: Worker
) -> None:
    for tail in (b"x", b"y"):
        large(root / tail.decode(), b"alike", tail, size_bytes=1 << 40)
    desk.add_library(root)
    assert find_duplicates(desk)["status"] == "completed"
    assert hashed(desk) == set()


@pytest.mark.usefixtures("cut")
def test_files_that_begin_and_end_alike_are_compared_in_between(
    desk: Desk, root: Path, worker: Worker
) -> None:
    end = bytes(TAIL_BYTES)
    for name, inside in (("a", b"x"), ("b", b"x"), ("c", b"y")):
        large(root / name, b"alike", inside + end)
    large(root / "d", b"not alike", b"x" + end)
    desk.add_library(root)
    find_duplicates(desk)
    assert hashed(desk) == {b"a", b"b", b"c"}
    files = desk.files()
    assert files[b"a"]["content_hash"] == files[b"b"]["content_hash"]
    assert files[b"a"]["content_hash"] != files[b"c"]["content_hash"]


@pytest.mark.usefixtures("cut")
def test_how_the_files_of_another_tenant_begin_is_no_reason_to_read_on(
    desk: Desk, root: Path, worker: Worker
) -> None:
    large(root / "one", b"alike")
    large(root / "two", b"not alike")
    desk.add_library(root)
    begins_alike = blake3(b"alike" + bytes(HEAD_BYTES - len(b"alike") + TAIL_BYTES)).digest()
    theirs = {"size_bytes": LARGE_BYTES, "prefix_hash": begins_alike, "needs_hash": False}
    in_doubt = theirs | {"prefix_hash": None, "needs_hash": True}
    with desk.database.write() as conn:
        add_files(conn, add_library(conn, "theirs", tenant_id="north"), [theirs, in_doubt])
    assert find_duplicates(desk)["total_items"] == 2
    assert desk.files()[b"one"]["prefix_hash"] == begins_alike, "it begins as theirs does"
    assert hashed(desk) == set()
    assert find_duplicates(desk)["total_items"] == 0


@pytest.mark.usefixtures("cut")
def test_a_file_that_was_alone_is_hashed_when_another_that_begins_alike_comes(
    desk: Desk, root: Path, worker: Worker
) -> None:
    large(root / "old", b"alike")
    large(root / "other", b"not alike")
    desk.add_library(root)
    find_duplicates(desk)
    assert hashed(desk) == set()
    large(root / "new", b"alike")
    find_duplicates(desk)
    assert hashed(desk) == {b"old", b"new"}


@pytest.mark.usefixtures("cut")
def test_what_is_known_to_differ_is_not_looked_at_again(
    desk: Desk, root: Path, worker: Worker
) -> None:
    large(root / "a", b"a")
    large(root / "b", b"b")
    desk.add_library(root)
    find_duplicates(desk)
    assert find_duplicates(desk)["total_items"] == 0


@pytest.mark.usefixtures("cut")
def test_a_changed_file_is_compared_anew(desk: Desk, root: Path, worker: Worker) -> None:
    large(root / "a", b"a")
    large(root / "b", b"b")
    desk.add_library(root)
    find_duplicates(desk)
    large(root / "b", b"a")
    find_duplicates(desk)
    assert hashed(desk) == {b"a", b"b"}


def test_a_library_whose_files_are_all_hashed_needs_no_beginnings(
    desk: Desk, root: Path, worker: Worker
) -> None:
    large(root / "a", b"a")
    large(root / "b", b"b")
    desk.add_library(root, hash_policy="all")
    job = find_duplicates(desk)
    assert hashed(desk) == {b"a", b"b"}
    assert [item["item_key"].partition("-")[0] for item in desk.items(job["id"])] == ["files"]


def test_small_files_are_read_at_once(desk: Desk, root: Path, worker: Worker) -> None:
    large(root / "a", b"a", size_bytes=LARGE_BYTES - 1)
    large(root / "b", b"b", size_bytes=LARGE_BYTES - 1)
    desk.add_library(root)
    find_duplicates(desk)
    assert hashed(desk) == {b"a", b"b"}
    assert {row["prefix_hash"] for row in desk.files().values()} == {None}


def test_whoever_has_all_files_of_a_size_reads_their_beginnings_with_them(
    desk: Desk, root: Path, worker: Worker
) -> None:
    for name, head in (("a", b"x"), ("b", b"x"), ("c", b"y")):
        large(root / name, head)
    desk.add_library(root)
    job = find_duplicates(desk)
    (item,) = desk.items(job["id"])
    assert not item["payload"]["is_prefix"]
    files = desk.files()
    assert hashed(desk) == {b"a", b"b"}
    for path, head in ((b"a", b"x"), (b"b", b"x"), (b"c", b"y")):
        begins = blake3(head + bytes(HEAD_BYTES - 1 + TAIL_BYTES)).digest()
        assert (files[path]["prefix_hash"], files[path]["needs_hash"]) == (begins, False)


def test_a_beginning_that_cannot_be_read_counts_as_alike(
    desk: Desk, root: Path, worker: Worker
) -> None:
    for name in ("a", "b", "c"):
        large(root / name, name.encode())
    desk.add_library(root)
    assert desk.run(JobKind.SCAN)["status"] == "completed"
    (root / "c").unlink()
    desk.run(JobKind.HASH)
    files = desk.files()
    assert files[b"c"]["error_code"] == "not_found"
    assert hashed(desk) == {b"a", b"b"}


def test_a_file_that_was_hashed_without_its_beginning_counts_as_alike(
    desk: Desk, root: Path, worker: Worker
) -> None:
    for name in (b"one", b"another"):
        large(root / name.decode(), name)
    desk.add_library(root)
    with desk.database.write() as conn:
        library = add_library(conn, "hashed", hash_policy="all")
        add_files(conn, library, [content(1) | {"size_bytes": LARGE_BYTES}])
    find_duplicates(desk)
    assert hashed(desk) >= {b"one", b"another"}


def test_beginnings_that_become_known_while_a_shard_is_read_count(
    desk: Desk, database: Databases, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_FILES", 1)
    for name in ("a", "b"):
        large(root / name, b"alike")
    desk.add_library(root)
    with control_loops(database), Worker(database.data):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    _beginnings, shard, _other = desk.items(desk.create(JobKind.HASH))
    task = hash_task(database.data, shard)
    assert isinstance(task, HashTask)
    known = update(library_files).values(prefix_hash=b"p" * 32)
    look = data_hashing._rows
    looks: list[Any] = []

    def look_after_a_while(*arguments: Any) -> Any:
        # Between the first look, at the files to read, and the second, at others of their sizes.
        # SQLite shows what was there at the first.
        if looks:
            with database.control.write() as conn:
                conn.execute(known)
        looks.append(arguments)
        return look(*arguments)

    monkeypatch.setattr(data_hashing, "_rows", look_after_a_while)
    marked = task.read()
    assert len(looks) == 2
    assert [file.rel_path for file in marked.undecided] == [b"a"]
    assert len(marked.of_their_sizes) == 2
    prefixes = [Hashed(file, b"p" * 32) for file in marked.undecided]
    assert tell_apart(marked, prefixes) == (marked.undecided, [])


def test_items_of_beginnings_have_no_other_files_than_those_of_their_size(
    desk: Desk, database: Databases, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_FILES", 2)
    for name in ("a", "y", "z"):
        large(root / name, name.encode())
    for number in range(4):
        large(root / f"between {number}", b"", size_bytes=LARGE_BYTES + 1 + number // 2)
    desk.add_library(root)
    with control_loops(database), Worker(database.data):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    beginnings, *_cut = desk.items(desk.create(JobKind.HASH))
    task = hash_task(database.data, beginnings)
    assert isinstance(task, PrefixTask)
    assert [file.rel_path for file in task.files] == [b"a", b"y", b"z"]


def test_shards_of_several_sizes_wait_for_no_beginnings(
    desk: Desk, database: Databases, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_FILES", 4)
    sizes = [*[LARGE_BYTES] * 5, *[LARGE_BYTES + 1] * 2, *[LARGE_BYTES + 2] * 2]
    for number, size_bytes in enumerate(sizes):
        large(root / str(number), b"%d" % number, size_bytes=size_bytes)
    desk.add_library(root)
    with control_loops(database), Worker(database.data):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    beginnings, *cut = desk.items(desk.create(JobKind.HASH))
    with database.control.write() as conn:
        running = update(job_items).where(job_items.c.id == beginnings["id"])
        conn.execute(running.values(status="running"))
    tasks = [hash_task(database.data, shard) for shard in cut]
    is_early = [isinstance(task, HashTask) and task.is_early() for task in tasks]
    assert is_early == [True, True, False]


@pytest.mark.parametrize(
    ("statuses", "is_early"),
    [
        (["running", "completed"], True),
        (["running", "pending"], False),  # whoever waits may be the one who has to do it
        (["completed", "failed"], False),
    ],
)
def test_only_beginnings_that_somebody_reads_are_waited_for(
    desk: Desk, database: Databases, root: Path, monkeypatch: pytest.MonkeyPatch,
    statuses: list[str], is_early: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(hashing, "PREFIX_FILES", 1)
    monkeypatch.setattr(shards, "SHARD_FILES", 1)
    large(root / "a", b"a")
    large(root / "b", b"b")
    desk.add_library(root)
    with control_loops(database), Worker(database.data):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    job_id = desk.create(JobKind.HASH)
    *prefixes, shard, _other = desk.items(job_id)
    with database.control.write() as conn:
        for item, status in zip(prefixes, statuses, strict=True):
            assert item["payload"]["is_prefix"]
            changed = update(job_items).where(job_items.c.id == item["id"])
            conn.execute(changed.values(status=status))
    task = hash_task(database.data, shard)
    assert isinstance(task, HashTask)
    # At the first look somebody may just be about to claim what nobody has claimed.
    assert task.is_early() is (is_early or "pending" in statuses)
    assert task.is_early() is is_early


def test_a_shard_of_all_sizes_as_older_versions_made_it_is_read_as_ever(
    desk: Desk, database: Databases, root: Path
) -> None:
    names = {"a": b"a", "b": b"b", "c": b"b"}
    for name, head in names.items():
        large(root / name, head)
        (root / f"small {name}").write_bytes(head)
    desk.add_library(root)
    with control_loops(database), Worker(database.data):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    job_id = desk.create(JobKind.HASH)
    with database.control.write() as conn:
        for path, row in desk.files().items():
            known = update(library_files).where(library_files.c.id == row["id"])
            if not path.startswith(b"small"):
                begins = blake3(names[path.decode()]).digest()
                conn.execute(known.values(prefix_hash=begins))
    old = {"first_file_id": 1, "last_file_id": 100, "is_prefix": False}
    task = hash_task(database.data, {"job_id": job_id, "payload": old})
    assert isinstance(task, HashTask)
    marked = task.read()
    assert [file.rel_path for file in marked.distinct] == [b"a"]
    assert [file.rel_path for file in marked.whole] == [
        b"b", b"c", b"small a", b"small b", b"small c",
    ]  # fmt: skip


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_large_files_come_in_whatever_order_no_duplicate_is_missed(
    desk: Desk, worker: Worker, root: Path, seed: int
) -> None:
    chance = Random(seed)
    desk.add_library(root)
    contents: dict[bytes, tuple[bytes, bytes, int]] = {}
    for generation in range(4):
        for number in range(chance.randrange(1, 7)):
            name = f"{generation}-{number}"
            head, tail = chance.choice([b"", b"a", b"b"]), chance.choice([b"", b"x"])
            extra_bytes = chance.randrange(2)
            large(root / name, head, tail, LARGE_BYTES + extra_bytes)
            contents[name.encode()] = (head, tail, extra_bytes)
        assert find_duplicates(desk)["status"] == "completed"
        by_hash: dict[bytes, set[bytes]] = {}
        for path, row in desk.files().items():
            if row["content_hash"] is not None:
                by_hash.setdefault(row["content_hash"], set()).add(path)
        expected = {
            frozenset(path for path, other in contents.items() if other == one)
            for one in contents.values()
        }
        found = {frozenset(paths) for paths in by_hash.values() if len(paths) > 1}
        assert found == {paths for paths in expected if len(paths) > 1}
