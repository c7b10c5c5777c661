"""Small files are hashed by a short way, which promises as much as the long one."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from blake3 import blake3

from data_plane.digests import ENDS, HEAD_BYTES, Answer, is_same
from data_plane.executor import ToHash
from data_plane.jail import Jail
from data_plane.small_files import Folders, answer_small
from tests.support.privileges import IS_ROOT, NOBODY, as_nobody, public_folder
from tests.support.scanning import put
from tests.support.waiting import let_the_clock_tick, must_not_block

LONG_AGO_NS = 10**18
CONTENT = b"content"
DIGEST = blake3(CONTENT).digest()


@pytest.fixture
def root() -> Iterator[Path]:
    """Three files in a row; something is to happen to the second one."""
    with public_folder() as folder:
        for name in (b"before", b"file", b"later"):
            put(folder, name, CONTENT)
            os.utime(folder / os.fsdecode(name), ns=(LONG_AGO_NS, LONG_AGO_NS))
        yield folder


def asked(*names: bytes, algorithm: str = "blake3") -> list[ToHash]:
    return [to_hash(name, len(CONTENT), algorithm=algorithm) for name in names]


def to_hash(
    name: bytes, size_bytes: int, mtime_ns: int = LONG_AGO_NS, algorithm: str = "blake3"
) -> ToHash:
    return ToHash(0, b"", name, size_bytes, mtime_ns, algorithm)


def answers(root: Path, files: list[ToHash]) -> list[Answer]:
    before = os.listdir("/proc/self/fd")
    with must_not_block(), Jail(bytes(root)) as jail, closing(Folders(jail)) as folders:
        found = answer_small(folders, files)
    assert os.listdir("/proc/self/fd") == before
    return found


def code_of_second(root: Path) -> str:
    """Why the second file has no hash; the others have theirs."""
    first, (code, message), third = answers(root, asked(b"before", b"file", b"later"))
    assert (first, third) == (DIGEST, DIGEST)
    assert str(message).endswith(".")
    return str(code)


def around(monkeypatch: pytest.MonkeyPatch, name: str, deed: Callable[[], object]) -> list[object]:
    """Have something happen after a system call for the second file, once; return when it did."""
    call, calls, deeds = getattr(os, name), [], []

    def called(*args: object, **options: object) -> object:
        result = call(*args, **options)
        calls.append(args)
        if len(calls) == 2:
            deeds.append(deed())
        return result

    monkeypatch.setattr(os, name, called)
    return deeds


@pytest.mark.parametrize("size", [0, 1, 1000, 128 << 10])
def test_the_digest_is_that_of_the_whole_file(root: Path, size: int) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    put(root, b"folder/whole", content)
    mtime_ns = (root / "folder/whole").stat().st_mtime_ns
    files = [to_hash(b"folder/whole", size, mtime_ns, name) for name in ("blake3", "sha256", ENDS)]
    assert answers(root, files) == [
        blake3(content).digest(),
        hashlib.sha256(content).digest(),
        blake3(content[:HEAD_BYTES] + content[max(HEAD_BYTES, size - 4096) :]).digest(),
    ]


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The files that were hashed by the long way: only there the position is named."""
    taken, pread = [], os.pread

    def reading(descriptor: int, length: int, offset: int) -> bytes:
        taken.append(descriptor)
        return pread(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", reading)
    return taken


def test_the_short_way_is_taken(root: Path, long_ways: list[int]) -> None:
    assert answers(root, asked(b"before", b"file", b"later")) == [DIGEST] * 3
    assert long_ways == []


@pytest.mark.parametrize("state", [(len(CONTENT) + 1, 0), (len(CONTENT) - 1, 0), (len(CONTENT), 1)])
def test_a_file_that_changed_since_the_scan_gets_no_hash(
    root: Path, state: tuple[int, int]
) -> None:
    size, later_ns = state
    (answer,) = answers(root, [to_hash(b"file", size, LONG_AGO_NS + later_ns)])
    assert answer[0] == "changed"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: None, "not_found"),
        (lambda path: path.symlink_to("later"), "refused_symlink"),
        (lambda path: path.symlink_to(path.name), "refused_symlink"),
        (os.mkfifo, "refused_not_regular"),
        (lambda path: path.mkdir(), "refused_not_regular"),
    ],
    ids=["nothing", "link", "loop", "pipe", "folder"],
)
def test_what_took_the_place_of_a_file_is_not_hashed(
    root: Path, make: Callable[[Path], object], code: str
) -> None:
    (root / "file").unlink()
    make(root / "file")
    assert code_of_second(root) == code


def fitting(path: Path) -> ToHash:
    """What a scan would have had to see for this, or what it leads to, to be as it was."""
    info = path.stat()
    return to_hash(os.fsencode(path.name), info.st_size, info.st_mtime_ns)


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFLNK, stat.S_IFDIR])
def test_what_is_no_regular_file_is_not_even_opened(
    root: Path, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "other"
    if kind == stat.S_IFLNK:
        path.symlink_to("file")
    elif kind == stat.S_IFDIR:
        path.mkdir()
    else:
        try:
            os.mknod(path, kind | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("making a device node needs CAP_MKNOD")
    opened, open_ = [], os.open

    def opening(name: bytes, flags: int, **options: int) -> int:
        opened.append(name)
        return open_(name, flags, **options)

    file = fitting(path)
    monkeypatch.setattr(os, "open", opening)
    (answer,) = answers(root, [file])
    assert str(answer[0]).startswith("refused_")
    assert b"other" not in opened


def replace_by_copy(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(b"another")
    os.utime(copy, ns=(LONG_AGO_NS, LONG_AGO_NS))
    copy.rename(path)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("later")


@pytest.mark.parametrize(
    ("deed", "code"),
    [
        (replace_by_copy, "changed"),
        (replace_by_pipe, "io_error"),
        (replace_by_link, "refused_symlink"),
        (lambda path: path.unlink(), "not_found"),
    ],
    ids=["copy", "pipe", "link", "nothing"],
)
def test_what_takes_the_place_of_a_file_that_was_looked_at_is_not_hashed(
    root: Path, deed: Callable[[Path], object], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deeds = around(monkeypatch, "stat", lambda: deed(root / "file"))
    assert code_of_second(root) == code
    assert len(deeds) == 1


def rewrite_in_secret(path: Path) -> None:
    path.write_bytes(b"another")
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


CHANGES = [
    rewrite_in_secret,
    append,
    lambda path: path.write_bytes(b"another"),
    lambda path: os.truncate(path, 3),
    lambda path: path.with_name("later").rename(path),
]
CHANGE_IDS = ["in secret", "appended", "whole", "cut", "renamed over"]


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize("deed", CHANGES, ids=CHANGE_IDS)
def test_a_file_that_changes_while_it_is_read_gets_no_hash(
    root: Path, call: str, deed: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_the_clock_tick(root / "file")
    with Jail(bytes(root)) as jail, closing(Folders(jail)) as folders:
        assert answer_small(folders, asked(b"before")) == [DIGEST]
        deeds = around(monkeypatch, call, lambda: deed(root / "file"))
        first, second = answer_small(folders, asked(b"before", b"file"))
    assert (first, second[0], len(deeds)) == (DIGEST, "changed", 1)


def info(**other: int) -> os.stat_result:
    """What the system says of a file, but for one thing."""
    known = {"st_mtime_ns": 5, "st_ctime_ns": 6, **other}
    mode, inode, device, size = (
        known.pop(f"st_{name}", 1) for name in ("mode", "ino", "dev", "size")
    )
    return os.stat_result((mode, inode, device, 1, 1, 1, size, 1, 1, 1), known)


def test_a_file_is_another_if_one_thing_of_it_is_but_not_if_it_was_read() -> None:
    assert is_same(info(), info())
    assert is_same(info(st_atime_ns=7), info(st_atime_ns=8))
    for name in ("st_ino", "st_dev", "st_size", "st_mtime_ns", "st_ctime_ns"):
        assert not is_same(info(**{name: 2}), info()), name


@pytest.mark.parametrize("call", ["read", "fstat", "close"])
def test_a_file_that_cannot_be_read_fails_alone(
    root: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Jail(bytes(root)) as jail, closing(Folders(jail)) as folders:
        answer_small(folders, asked(b"before"))
        around(monkeypatch, call, fail)
        first, second, third = answer_small(folders, asked(b"before", b"file", b"later"))
    assert (first, second[0], third) == (DIGEST, "io_error", DIGEST)


def test_a_file_that_comes_in_pieces_is_hashed_whole(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, length: read(descriptor, min(length, 3)))
    assert answers(root, asked(b"file")) == [DIGEST]


def test_a_folder_that_cannot_be_opened_costs_its_own_files_alone(root: Path) -> None:
    put(root, b"real/file", CONTENT)
    os.utime(root / "real/file", ns=(LONG_AGO_NS, LONG_AGO_NS))
    (root / "link").symlink_to("real")
    names = [b"real/file", b"gone/1", b"gone/2", b"link/file", b"file/x", b"real/file", b"file"]
    found = answers(root, asked(*names))
    assert [one if isinstance(one, bytes) else one[0] for one in found] == [
        DIGEST,
        "not_found",
        "not_found",
        "refused_symlink",
        "changed",
        DIGEST,
        DIGEST,
    ]


@pytest.mark.parametrize("name", [b"", b".", b"..", b"../file", b"fi\0le", b"a\0b/file"])
def test_what_is_no_path_of_a_file_is_refused(root: Path, name: bytes) -> None:
    found = answers(root, asked(b"file", name, b"later"))
    assert (found[0], found[2]) == (DIGEST, DIGEST)
    assert str(found[1][0]).startswith("refused_")


def test_reading_leaves_no_trace(root: Path) -> None:
    # Older than the last change: any ordinary read would now leave its time.
    os.utime(root / "file", ns=(LONG_AGO_NS - 10**9, LONG_AGO_NS))
    assert answers(root, asked(b"file")) == [DIGEST]
    assert (root / "file").stat().st_atime_ns == LONG_AGO_NS - 10**9


@pytest.mark.skipif(not IS_ROOT, reason="only root can make files of another owner")
def test_files_of_another_owner_are_hashed_as_well(root: Path, long_ways: list[int]) -> None:
    os.chown(root, NOBODY, NOBODY)

    def attempt() -> tuple[list[Answer], int]:
        return answers(root, asked(b"before", b"file", b"later")), len(long_ways)

    assert as_nobody(attempt) == ([DIGEST] * 3, 1), "one is enough to know that it is not permitted"
