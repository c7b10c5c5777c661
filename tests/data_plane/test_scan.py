"""A scan sees every regular file once, in the order of the paths, and reports only differences."""

import os
import shutil
import socket
import stat
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from data_plane.executor import Fail, ScanTask
from data_plane.executors.scan import MANY_FILES, scan
from tests.support.scanning import MemoryReport, context, put, scanned, seen

HOSTILE_NAMES = [
    b"a-b",
    b"a.b",
    b"a/b",
    b"a/b.c",
    b"a0",
    b"A",
    b"a!/b",
    b"a!b",
    b"a\nb",
    b"\n/\n",
    b"-rf",
    b"~",
    b"*",
    b" ",
    b"\x01",
    b"\\",
    b"\xff",
    b"\xff\xfe/\xfe",
    b"caf\xc3\xa9",
    b"cafe\xcc\x81",
    b"TWIN/x",
    b"twin/x",
    b"Twin",
    b"n" * 255,
    b"d" * 255 + b"/" + b"\xf0" * 255,
    b"...",
    b"..a/..b",
]


def deep_folder(root: Path, name: bytes, depth: int) -> None:
    """Nest folders by descriptor: their path may be longer than any call takes."""
    at = os.open(root, os.O_PATH)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_PATH, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open(b"file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


def test_files_are_visited_in_the_byte_order_of_their_whole_paths(tmp_path: Path) -> None:
    for name in HOSTILE_NAMES:
        put(tmp_path, name, name)
    report = scanned(tmp_path)
    assert report.changed_paths == sorted(HOSTILE_NAMES)
    assert report.changed == [seen(tmp_path, name) for name in sorted(HOSTILE_NAMES)]
    assert not report.unseen


def test_a_second_scan_reports_nothing(tmp_path: Path) -> None:
    for name in HOSTILE_NAMES:
        put(tmp_path, name, name)
    second = scanned(tmp_path, scanned(tmp_path).taken_over())
    assert (second.changed, second.missing, second.unseen) == ([], [], [])
    assert second.counts
    assert second.counts.seen_files == len(HOSTILE_NAMES)
    assert second.counts.seen_bytes == sum(map(len, HOSTILE_NAMES))


def test_the_counts_tell_new_changed_and_missing_files_apart(tmp_path: Path) -> None:
    for name in (b"gone", b"kept", b"rewritten"):
        put(tmp_path, name)
    first = scanned(tmp_path)
    (tmp_path / "gone").unlink()
    put(tmp_path, b"rewritten", b"longer")
    put(tmp_path, b"new", b"1")
    counts = scanned(tmp_path, first.taken_over()).counts
    assert counts
    assert (counts.new_files, counts.changed_files, counts.missing_files) == (1, 1, 1)
    assert (counts.seen_files, counts.seen_bytes, counts.errored_files) == (3, 7, 0)


def test_a_file_with_another_inode_and_nothing_else_changed_is_reported(tmp_path: Path) -> None:
    put(tmp_path, b"picture", b"1234")
    first = scanned(tmp_path)
    shutil.copy2(tmp_path / "picture", tmp_path / "copy")
    (tmp_path / "copy").rename(tmp_path / "picture")
    second = scanned(tmp_path, first.taken_over())
    assert second.changed_paths == [b"picture"]
    assert second.changed[0][:3] == first.changed[0][:3]


def test_links_and_special_files_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, b"folder/real", b"1")
    put(tmp_path.parent, b"outside/secret")
    (tmp_path / "to-file").symlink_to("folder/real")
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "outside").symlink_to(tmp_path.parent / "outside")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    with suppress(PermissionError):  # devices are made by root alone
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.mknod(tmp_path / "loop", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(tmp_path / "socket"))
        report = scanned(tmp_path)
    assert report.changed_paths == [b"folder/real"]
    assert not report.unseen


def test_loops_of_links_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, b"a/file")
    (tmp_path / "a/up").symlink_to("..")
    (tmp_path / "a/self").symlink_to(".")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert scanned(tmp_path).changed_paths == [b"a/file"]


def test_hard_links_are_seen_under_each_name_with_one_inode(tmp_path: Path) -> None:
    put(tmp_path, b"b", b"1")
    (tmp_path / "a").hardlink_to(tmp_path / "b")
    first, second = scanned(tmp_path).changed
    assert (first.rel_path, second.rel_path) == (b"a", b"b")
    assert first[1:] == second[1:]


def test_our_own_state_folder_is_not_part_of_the_library(tmp_path: Path) -> None:
    put(tmp_path, b"photos/1")
    put(tmp_path, b"photos/.state/mediaplane.db")
    put(tmp_path, b"photos/.state/run/lock")
    report = MemoryReport()
    own = tmp_path / "photos/.state"
    scan(ScanTask("pictures", bytes(tmp_path), report), context(None, own))
    assert report.changed_paths == [b"photos/1"]
    assert scanned(tmp_path).changed_paths[:1] == [b"photos/.state/mediaplane.db"]


def test_an_empty_library_is_walked_and_reports_every_known_file_missing(tmp_path: Path) -> None:
    put(tmp_path, b"a/b")
    put(tmp_path, b"c")
    known = scanned(tmp_path).taken_over()
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "c").unlink()
    report = scanned(tmp_path, known)
    assert report.missing_paths == [b"a/b", b"c"]


def test_a_root_is_told_by_its_file_system_and_inode(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, other = scanned(tmp_path).root, scanned(tmp_path / "other").root
    assert first
    assert first[1] == tmp_path.stat().st_ino
    assert first == scanned(tmp_path).root != other


def test_a_tree_of_500_levels_is_walked(tmp_path: Path) -> None:
    deep_folder(tmp_path, b"d", 500)
    try:
        assert scanned(tmp_path).changed_paths == [b"d/" * 500 + b"file"]
    finally:
        shutil.rmtree(tmp_path / "d")


@pytest.mark.parametrize(
    ("depth", "refused"),
    [
        (16, (b"/".join([b"n" * 255] * 16 + [b"file"]), False)),
        (17, (b"/".join([b"n" * 255] * 17), True)),
    ],
    ids=["file", "folder"],
)
def test_a_path_too_long_to_open_is_reported_and_the_rest_is_walked(
    tmp_path: Path, depth: int, refused: tuple[bytes, bool]
) -> None:
    put(tmp_path, b"z")
    deep_folder(tmp_path, b"n" * 255, depth)
    try:
        report = scanned(tmp_path)
    finally:
        shutil.rmtree(tmp_path / ("n" * 255))
    assert report.changed_paths == [b"z"]
    explained = ("refused_too_long", "Its path is too long to be opened.")
    assert report.unseen == [(*refused, *explained)]


def test_the_scan_waits_until_its_report_is_taken_over(tmp_path: Path) -> None:
    report = MemoryReport()
    report.verdicts = [False, False, True]
    scanned(tmp_path, report)
    assert not report.verdicts


def test_a_refused_report_fails_the_scan_with_the_reason_of_the_refusal(tmp_path: Path) -> None:
    report = MemoryReport()
    report.verdicts = [False, ("root_empty", "The library is empty now.")]
    with pytest.raises(Fail, match="The library is empty now") as failed:
        scanned(tmp_path, report)
    assert failed.value.code == "root_empty"


def test_a_scan_that_finds_much_says_that_it_will_be_hashed(tmp_path: Path) -> None:
    told: list[int] = []

    def rescanned(report: MemoryReport) -> MemoryReport:
        expecting = replace(context(), expect_hashing=lambda: told.append(1))
        scan(ScanTask("pictures", bytes(tmp_path), report), expecting)
        return report.taken_over()

    for number in range(MANY_FILES - 1):
        (tmp_path / f"{number}").touch()
    rescanned(MemoryReport())
    assert not told
    (tmp_path / "one more").touch()
    known = rescanned(MemoryReport())
    assert told == [1]
    rescanned(known)
    assert told == [1]


def test_a_time_of_change_that_no_database_can_store_does_not_stop_the_scan() -> None:
    # A file system in memory keeps any time; others clamp it themselves.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        put(Path(name), b"from the future", b"x")
        path = os.path.join(os.fsencode(name), b"from the future")
        os.utime(path, ns=(0, 2 * 10**19))
        (file,) = scanned(Path(name)).changed
        assert file.mtime_ns == min(os.stat(path).st_mtime_ns, 2**63 - 1)
