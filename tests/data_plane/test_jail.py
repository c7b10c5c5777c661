"""Files are opened beneath a root, and nothing hostile in the tree leads outside or blocks."""

import ctypes
import errno
import fcntl
import json
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from data_plane import jail as jail_module
from data_plane.jail import Jail, JailRefused, Resolver
from tests.support.privileges import as_nobody
from tests.support.waiting import must_not_block

REPOSITORY = Path(__file__).parents[2]
CASES: dict[str, tuple[bytes, str]] = {
    case["id"]: (case["rel"].encode("latin-1"), case["expect"])
    for case in json.loads((REPOSITORY / "tests/data/hostile_paths.json").read_text())
}
NEED_ANOTHER_TEST = {"T05 block device node", "T08 mode 000 (as non-root)"}
SYMLINKS = {
    "s02": "../outside/secret",
    "s04": "/",
    "s05": "in.jpg",
    "s07a": "s07b",
    "s07b": "s07a",
    "s10": "/proc/self/root",
    "s12": "/proc/self/environ",
    "s13": "/dev/zero",
    "s14": ".",
    "s15": "..",
}

SWAPPER = """
import os, sys
here, away, decoy, stop = sys.argv[1:]
swaps = 0
while not os.path.exists(stop):
    os.rename(here, away)
    os.rename(decoy, here)
    os.rename(here, decoy)
    os.rename(away, here)
    swaps += 1
print(swaps)
"""

BLOCK_OPENAT2 = """
import ctypes, os, struct, sys
from data_plane.jail import Jail
code, root = int(sys.argv[1]), os.fsencode(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
load, equal, ret = 0x20, 0x15, 0x06
program = b"".join(struct.pack("HBBI", *op) for op in (
    (load, 0, 0, 0), (equal, 0, 1, 437), (ret, 0, 0, 0x50000 | code), (ret, 0, 0, 0x7FFF0000)))
buffer = ctypes.create_string_buffer(program)
rules = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, rules, 0, 0) == 0
assert libc.syscall(437, -100, b".", None, 0) == -1 and ctypes.get_errno() == code
with Jail(root) as jail:
    print(jail.resolver, os.read(jail.open_file(b"a/in.jpg"), 9).decode())
"""


@pytest.fixture(params=["openat2", "walk"])
def resolver(request: pytest.FixtureRequest) -> Resolver:
    chosen: Resolver = request.param
    return chosen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "in.jpg").write_bytes(b"inside")
    (root / "a/in.jpg").write_bytes(b"inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"secret")
    return root


@pytest.fixture
def jail(root: Path, resolver: Resolver) -> Iterator[Jail]:
    with Jail(bytes(root), resolver) as jail:
        yield jail


def put(root: Path, rel: bytes, content: bytes) -> None:
    path = os.path.join(bytes(root), rel)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def build_hostile_tree(root: Path) -> None:
    for name, target in SYMLINKS.items():
        (root / name).symlink_to(target)
    (root / "s01").symlink_to(root.parent / "outside/secret")
    (root / "s03").symlink_to(root.parent / "outside")
    os.mkfifo(root / "t01")
    (root / "t04.jpg").mkdir()
    for case_id, (rel, expect) in CASES.items():
        if expect == "open" and rel not in {b"sparse.bin", b"hard.jpg"}:
            put(root, rel, case_id.encode())
    with (root / "sparse.bin").open("wb") as sparse:
        sparse.truncate(1 << 40)
    (root / "hard.jpg").hardlink_to(root / "in.jpg")


def read(jail: Jail, rel: bytes) -> bytes:
    fd = jail.open_file(rel)
    try:
        return os.read(fd, 64)
    finally:
        os.close(fd)


def reason_of(jail: Jail, rel: bytes) -> str:
    with pytest.raises(JailRefused) as caught:
        jail.open_file(rel)
    return caught.value.reason


def read_by_folder(jail: Jail, rel: bytes) -> bytes:
    folder = jail.open_dir(rel.rpartition(b"/")[0])
    try:
        descriptor, _state = jail.open_file_in(folder, rel)
    finally:
        os.close(folder)
    with open(descriptor, "rb") as file:
        return file.read(64)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("case_id", sorted(CASES.keys() - NEED_ANOTHER_TEST))
def test_every_hostile_path_is_opened_or_refused_as_the_table_says(
    root: Path, jail: Jail, case_id: str
) -> None:
    build_hostile_tree(root)
    rel, expect = CASES[case_id]
    before = open_descriptors()
    with must_not_block():
        if expect == "open":
            content = {b"sparse.bin": bytes(64), b"hard.jpg": b"inside"}
            assert read(jail, rel) == content.get(rel, case_id.encode())
        elif rel == b"in.jpg/x":
            with pytest.raises(NotADirectoryError):
                jail.open_file(rel)
        else:
            lexical = expect.partition(":")[2]
            by_kind = {"L": lexical, "S": "symlink", "T": "not_regular"}
            assert reason_of(jail, rel) == by_kind[case_id[0]]
    assert open_descriptors() == before


@pytest.mark.parametrize("case_id", sorted(CASES.keys() - NEED_ANOTHER_TEST))
def test_by_way_of_its_folder_no_other_path_is_opened(root: Path, jail: Jail, case_id: str) -> None:
    build_hostile_tree(root)
    rel, expect = CASES[case_id]
    before = open_descriptors()
    with must_not_block():
        if expect == "open":
            assert read_by_folder(jail, rel) == read(jail, rel)
        else:
            with pytest.raises(OSError):  # noqa: PT011 - whichever of the two steps refuses it
                read_by_folder(jail, rel)
    assert open_descriptors() == before


def test_a_block_device_node_is_refused(root: Path, jail: Jail) -> None:
    rel, _ = CASES["T05 block device node"]
    try:
        os.mknod(os.path.join(bytes(root), rel), stat.S_IFBLK | 0o600, os.makedev(7, 0))
    except PermissionError:
        pytest.skip("making a device node needs CAP_MKNOD")
    assert reason_of(jail, rel) == "not_regular"


def test_an_existing_character_device_is_refused(resolver: Resolver) -> None:
    with Jail(b"/dev", resolver) as devices:
        assert reason_of(devices, b"null") == "not_regular"


def test_a_file_of_mode_000_cannot_be_read_without_privileges(root: Path, jail: Jail) -> None:
    rel, _ = CASES["T08 mode 000 (as non-root)"]
    put(root, rel, b"private")
    os.chmod(os.path.join(bytes(root), rel), 0)

    def attempt() -> str:
        try:
            return read(jail, rel).decode()
        except PermissionError as error:
            return f"{type(error).__name__} {error.filename!r}"

    assert as_nobody(attempt) == f"PermissionError {rel!r}"


def test_an_absent_file_is_absent_and_not_refused(jail: Jail) -> None:
    for rel in (b"gone.jpg", b"gone/x.jpg"):
        with pytest.raises(FileNotFoundError) as caught:
            jail.open_file(rel)
        assert caught.value.filename == rel


def test_a_fifo_without_a_writer_does_not_block(root: Path, jail: Jail) -> None:
    os.mkfifo(root / "pipe.mp4")
    with must_not_block():
        assert reason_of(jail, b"pipe.mp4") == "not_regular"


@pytest.mark.parametrize("decoy", ["symlink to a directory", "symlink to a file", "fifo"])
@pytest.mark.parametrize("proc", ["with proc", "without proc"])
def test_swapping_names_while_opening_never_escapes_and_never_blocks(
    root: Path, jail: Jail, decoy: str, proc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if proc == "without proc":
        monkeypatch.setattr(jail_module, "PROC_FD", b"/nonexistent/%d")
    rel, swapped = (b"a/secret", "a") if "directory" in decoy else (b"a/in.jpg", "a/in.jpg")
    put(root, rel, b"inside")
    target = root.parent / ("outside" if "directory" in decoy else "outside/secret")
    os.mkfifo(root / "decoy") if decoy == "fifo" else (root / "decoy").symlink_to(target)
    before = open_descriptors()
    seen: set[bytes | str] = set()
    expected: set[bytes | str] = {b"inside", "not_regular" if decoy == "fifo" else "symlink"}
    names = [str(root / name) for name in (swapped, "away", "decoy", "stop")]
    command = [sys.executable, "-c", SWAPPER, *names]
    with must_not_block(), subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        left = 20_000
        while left:
            # On a busy machine it can take a while until both sides of the swap were seen.
            left -= expected <= seen
            try:
                seen.add(read(jail, rel))
            except JailRefused as refused:
                seen.add(refused.reason)
            # The walk asks why an open failed afterwards, when the link may be gone again.
            except (FileNotFoundError, NotADirectoryError):
                seen.add("absent")
        (root / "stop").touch()
        assert swapper.stdout is not None
        swaps = int(swapper.stdout.read())
    assert seen <= expected | {"absent", "symlink", "not_regular", "changed", "escapes"}
    assert swaps > 10
    assert open_descriptors() == before


def test_a_file_replaced_between_the_check_and_the_open_is_refused(
    root: Path, jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = root.parent / "outside/secret"
    before = open_descriptors()
    monkeypatch.setattr(jail_module, "PROC_FD", _Always(bytes(other)))
    assert reason_of(jail, b"in.jpg") == "changed"
    assert open_descriptors() == before


class _Always(bytes):
    """A template that ignores the descriptor, as a name replaced behind our back would."""

    def __mod__(self, value: object) -> bytes:
        return bytes(self)


def test_files_open_without_proc(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail_module, "PROC_FD", b"/nonexistent/%d")
    fd = jail.open_file(b"a/in.jpg")
    assert os.read(fd, 64) == b"inside"
    assert os.get_blocking(fd)
    os.close(fd)


def test_descriptors_are_read_only_private_and_leave_access_times_alone(jail: Jail) -> None:
    for fd in (jail.open_file(b"in.jpg"), jail.open_dir(b"a"), jail.open_dir()):
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        assert flags & os.O_ACCMODE == os.O_RDONLY
        assert flags & os.O_NOATIME
        assert not os.get_inheritable(fd)
        os.close(fd)


def test_files_of_other_owners_open_without_the_access_time_flag(resolver: Resolver) -> None:
    with Jail(b"/etc", resolver) as etc:

        def attempt() -> str:
            # Twice: the second open takes the remembered way.
            flags = [fcntl.fcntl(etc.open_file(b"passwd"), fcntl.F_GETFL) for _ in range(2)]
            listing = fcntl.fcntl(etc.open_dir(None), fcntl.F_GETFL)
            return str([bool(flag & os.O_NOATIME) for flag in [*flags, listing]])

        assert as_nobody(attempt) == "[False, False, False]"


def test_directories_open_for_scanning_and_links_to_them_do_not(root: Path, jail: Jail) -> None:
    (root / "link").symlink_to("a")
    for rel, names in ((b"a", {"in.jpg"}), (b"", {"a", "in.jpg", "link"})):
        fd = jail.open_dir(rel)
        assert set(os.listdir(fd)) == names
        os.close(fd)
    with pytest.raises(JailRefused, match="symbolic link"):
        jail.open_dir(b"link")
    with pytest.raises(JailRefused, match="dotdot_component"):
        jail.open_dir(b"a/..")
    with pytest.raises(NotADirectoryError):
        jail.open_dir(b"in.jpg")


def test_the_root_may_be_reached_through_a_link_and_keeps_its_identity(
    root: Path, resolver: Resolver
) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with Jail(bytes(link), resolver) as jail:
        root.rename(root.parent / "renamed")
        assert read(jail, b"in.jpg") == b"inside"
        info = (root.parent / "renamed").stat()
        assert jail.identity == (info.st_dev, info.st_ino)


def test_a_root_must_be_an_absolute_path_to_a_directory(root: Path) -> None:
    with pytest.raises(ValueError, match="absolute"):
        Jail(b"relative")
    with pytest.raises(NotADirectoryError):
        Jail(bytes(root / "in.jpg"))


def test_a_closed_jail_opens_nothing(root: Path, resolver: Resolver) -> None:
    jail = Jail(bytes(root), resolver)
    jail.close()
    jail.close()
    for open_again in (jail.open_file, jail.open_dir):
        with pytest.raises(OSError, match="Bad file descriptor"):
            open_again(b"a")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_or_filter_without_openat2_selects_the_walk(root: Path, code: int) -> None:
    command = [sys.executable, "-c", BLOCK_OPENAT2, str(code), str(root)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.stdout == "walk inside\n"


@pytest.mark.parametrize(
    ("failures", "reason"),
    [([errno.EAGAIN] * 3, None), ([errno.EXDEV], None), ([errno.EXDEV] * 2, "escapes"),
     ([errno.EAGAIN] * 65, "changed"), ([errno.EAGAIN, errno.EXDEV], None)],
)  # fmt: skip
def test_openat2_is_retried_within_bounds(
    root: Path, failures: list[int], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, real = list(failures), jail_module._syscall

    def flaky(*args: object) -> int:
        if not left:
            return int(real(*args))
        ctypes.set_errno(left.pop(0))
        return -1

    monkeypatch.setattr(jail_module, "_syscall", flaky)
    with Jail(bytes(root), "openat2") as jail:
        if reason:
            assert reason_of(jail, b"in.jpg") == reason
        else:
            assert read(jail, b"in.jpg") == b"inside"
    assert not left


def test_a_refusal_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(JailRefused("symlink", b"a\x1b")))
    assert (copy.reason, copy.rel, copy.errno) == ("symlink", b"a\x1b", errno.EPERM)
    assert "\x1b" not in str(copy)
