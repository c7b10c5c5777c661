"""A file gets the hash of the state in which it was scanned, or none."""

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from blake3 import blake3

from data_plane.executor import (
    Cancelled,
    Control,
    Hashed,
    HashResult,
    Interrupted,
    LeaseLost,
    ToHash,
)
from data_plane.executors.hash import hash_files
from mediaplane.protocol.values import HashAlgorithm
from tests.support.privileges import as_nobody, public_folder
from tests.support.scanning import context, put, scanned
from tests.support.waiting import (
    PATIENCE_SECONDS,
    eventually,
    let_the_clock_tick,
    must_not_block,
    promptly,
)

BLOCK = 128 << 10
TOLD = 1 << 20
LONG_AGO_NS = 10**18


@pytest.fixture
def root() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


def to_hash(
    root: Path, rel: bytes, algorithm: HashAlgorithm = HashAlgorithm.BLAKE3, file_id: int = 1
) -> ToHash:
    """The file as a scan sees it now."""
    info = os.lstat(os.path.join(bytes(root), rel))
    return ToHash(file_id, bytes(root), rel, info.st_size, info.st_mtime_ns, algorithm)


def hashed(*files: ToHash, control: Control | None = None) -> HashResult:
    return hash_files(files, context(control))


def code_of(result: HashResult) -> str:
    """Why the one file of a task has no hash."""
    (unhashed,) = result.unhashed
    assert (result.hashed, result.left) == ([], 0)
    assert unhashed.message.endswith(".")
    return unhashed.code


def sparse(root: Path, name: str, size_bytes: int) -> Path:
    path = root / name
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


class Meddling(Control):
    """Does something to a file between two reads of it."""

    def __init__(self, deed: Callable[[], object], times: int = 1) -> None:
        super().__init__()
        self.deed = deed
        self.times = times
        self.deeds = 0

    def check(self) -> None:
        super().check()
        if self.bytes and self.deeds < self.times:
            self.deed()
            self.deeds += 1


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, TOLD, TOLD + 1])
def test_the_digest_is_that_of_the_whole_file(root: Path, size: int) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    put(root, b"file", content)
    control = Control()
    result = hashed(
        to_hash(root, b"file", HashAlgorithm.BLAKE3),
        to_hash(root, b"file", HashAlgorithm.SHA256),
        control=control,
    )
    expected = [blake3(content).digest(), hashlib.sha256(content).digest()]
    assert [digest for _, digest in result.hashed] == expected
    assert (control.items, control.bytes) == (2, 2 * size)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"n" * 255, b"d/e/f", b" "])
def test_a_file_is_hashed_whatever_its_name(root: Path, name: bytes) -> None:
    put(root, name, b"content")
    file = to_hash(root, name)
    assert hashed(file).hashed == [Hashed(file, blake3(b"content").digest())]


def test_a_file_that_changed_since_the_scan_gets_no_hash(root: Path) -> None:
    put(root, b"file", b"1234")
    file = to_hash(root, b"file")
    assert code_of(hashed(file._replace(size_bytes=5))) == "changed"
    assert code_of(hashed(file._replace(mtime_ns=file.mtime_ns + 1))) == "changed"
    assert len(hashed(file).hashed) == 1


def rewrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2 * TOLD)
        file.write(b"other")


def rewrite_in_secret(path: Path) -> None:
    info = path.stat()
    rewrite(path)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize(
    "deed",
    [
        rewrite,
        rewrite_in_secret,
        append,
        lambda path: os.truncate(path, TOLD // 2),
        lambda path: os.truncate(path, 0),
        lambda path: path.write_bytes(b"y" * 3 * TOLD),
        lambda path: path.with_name("new").rename(path),
    ],
    ids=["in part", "in secret", "appended", "cut", "emptied", "whole", "renamed over"],
)
def test_a_file_that_changes_while_it_is_hashed_gets_no_hash(
    root: Path, deed: Callable[[Path], object]
) -> None:
    path = root / "file"
    path.write_bytes(b"x" * 3 * TOLD)
    path.with_name("new").write_bytes(b"y" * 3 * TOLD)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    let_the_clock_tick(path)
    file = to_hash(root, b"file")
    before = path.read_bytes()
    control = Meddling(lambda: deed(path))
    result = hashed(file, control=control)
    assert control.deeds == 1
    assert path.read_bytes() != before
    assert code_of(result) == "changed"


def test_a_file_that_never_stops_growing_is_given_up(root: Path) -> None:
    put(root, b"file", b"x" * 2 * TOLD)
    file = to_hash(root, b"file")

    def grow() -> None:
        with (root / "file").open("ab") as growing:
            growing.write(b"x" * TOLD)

    control = Meddling(grow, times=1000)
    with must_not_block():
        assert code_of(hashed(file, control=control)) == "changed"
    assert 1 < control.deeds < 5


def test_a_file_that_may_not_be_read_is_reported(root: Path) -> None:
    put(root, b"secret", b"1")
    put(root, b"shut/file", b"1")
    put(root, b"open", b"1")
    secret, shut, other = (
        to_hash(root, name, file_id=number)
        for number, name in enumerate((b"secret", b"shut/file", b"open"))
    )
    (root / "secret").chmod(0)
    (root / "shut").chmod(0)
    result = as_nobody(lambda: hashed(secret, shut, other))
    assert [(file, code) for file, code, _ in result.unhashed] == [
        (secret, "permission_denied"),
        (shut, "permission_denied"),
    ]
    assert [file.file_id for file, _ in result.hashed] == [other.file_id]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: None, "not_found"),
        (lambda path: path.symlink_to("real"), "refused_symlink"),
        (lambda path: path.symlink_to(path.name), "refused_symlink"),
        (os.mkfifo, "refused_not_regular"),
        (lambda path: path.mkdir(), "refused_not_regular"),
    ],
    ids=["nothing", "link", "loop", "pipe", "folder"],
)
def test_what_took_the_place_of_a_file_is_not_hashed(
    root: Path, make: Callable[[Path], object], code: str
) -> None:
    put(root, b"file", b"1")
    put(root, b"real", b"1")
    file = to_hash(root, b"file")
    (root / "file").unlink()
    make(root / "file")
    with must_not_block():
        assert code_of(hashed(file)) == code


def test_a_folder_on_the_way_that_became_a_link_is_not_followed(root: Path) -> None:
    put(root, b"library/folder/file", b"1")
    put(root, b"outside/file", b"1")
    file = to_hash(root / "library", b"folder/file")
    shutil.rmtree(root / "library/folder")
    (root / "library/folder").symlink_to(root / "outside")
    assert code_of(hashed(file)) == "refused_symlink"


def test_files_of_a_root_that_is_not_there_are_left_for_another_time(root: Path) -> None:
    put(root, b"here/file", b"1")
    put(root, b"gone/file", b"1")
    here, gone = to_hash(root / "here", b"file"), to_hash(root / "gone", b"file")
    shutil.rmtree(root / "gone")
    control = Control()
    result = hashed(gone, here, gone, control=control)
    assert ([file for file, _ in result.hashed], result.unhashed, result.left) == ([here], [], 2)
    assert control.items == 1


@pytest.mark.parametrize(
    ("signal", "raised"),
    [("cancelled", Cancelled), ("lost", LeaseLost), ("interrupted", Interrupted)],
)
def test_one_huge_file_is_left_within_a_second(
    root: Path, signal: str, raised: type[Exception]
) -> None:
    sparse(root, "huge", 1 << 40)

    def seconds_to_the_end() -> float:
        control, ended = Control(), threading.Event()

        def work() -> None:
            with pytest.raises(raised):
                hashed(to_hash(root, b"huge"), control=control)
            ended.set()

        threading.Thread(target=work, daemon=True).start()
        eventually(lambda: control.bytes > 0)
        assert not ended.is_set()
        asked_at = time.monotonic()
        getattr(control, signal).set()
        assert ended.wait(PATIENCE_SECONDS)
        return time.monotonic() - asked_at

    promptly(seconds_to_the_end, 1.0)


def test_scanning_and_hashing_leave_the_source_as_it_was(root: Path) -> None:
    for name in (b"a/1", b"a/2", b"b"):
        put(root, name, name)
    with suppress(OSError):  # not every file system has them
        os.setxattr(root / "b", "user.note", b"mine")
    tree = [root, root / "a", root / "a/1", root / "a/2", root / "b"]
    for path in tree:
        # Older than the last change: any ordinary read would now leave its time.
        os.utime(path, ns=(LONG_AGO_NS - 10**9, LONG_AGO_NS))

    def traces() -> list[object]:
        return [(path.lstat(), os.listxattr(path)) for path in tree]

    before = traces()
    files = [to_hash(root, file.rel_path) for file in scanned(root).changed]
    assert len(hashed(*files).hashed) == 3
    assert traces() == before
