"""The promise: the exact duplicates of a folder, and a folder that is as it was."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support import tree
from tests.support.commands import Commands

FILES = 21_000  # of which some become links


def test_up_finds_exactly_the_groups_of_an_independent_tool(
    sqlite_commands: Commands, postgres_commands: Commands, tmp_path: Path
) -> None:
    if shutil.which("jdupes") is None:
        pytest.skip("jdupes is not installed: apt-get install jdupes")
    root = tmp_path / "large tree"
    root.mkdir()
    tree.generate(root, FILES)
    before = tree.snapshot(root)
    # On both in one test: what they are compared with takes as long as they do.
    summary = sqlite_commands.json("up", root, "--once", "--no-media")
    same = postgres_commands.json("up", root, "--once", "--no-media")
    assert tree.snapshot(root) == before, "the library was changed"
    found = sqlite_commands.groups({"large-tree": root})
    assert found == postgres_commands.groups({"large-tree": root}) == tree.brute_force(root)
    # jdupes 1.21 errs where one file has three names, so those groups are left to brute force.
    links = {
        tree.inode(os.path.join(folder, name)): os.lstat(os.path.join(folder, name)).st_nlink
        for folder, _, names in os.walk(os.fsencode(root))
        for name in names
    }
    peer = {group for group in tree.jdupes(root) if all(links[i] < 3 for i in group)}
    assert {group for group in found if all(links[i] < 3 for i in group)} == peer
    assert len(peer) > 500
    assert _results(summary) == _results(same)
    assert summary["groups"] == len(found)
    assert summary["duplicate_files"] == sum(len(group) - 1 for group in found)
    regular = [
        os.lstat(os.path.join(folder, name))
        for folder, _, names in os.walk(os.fsencode(root))
        for name in names
        if os.path.isfile(os.path.join(folder, name))
        and not os.path.islink(os.path.join(folder, name))
        and b"closed folder" not in folder
    ]
    assert summary["files"] == len(regular) >= 20_000
    assert summary["bytes"] == sum(info.st_size for info in regular)


def test_unreadable_files_are_reported_one_by_one_and_do_not_fail_the_run(
    commands: Commands, tmp_path: Path
) -> None:
    root = tmp_path / "library"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_bytes(b"equal")
    (root / "b").chmod(0)
    (root / "closed").mkdir()
    (root / "closed" / "inside").write_bytes(b"equal")
    (root / "closed").chmod(0)
    summary = commands.json("up", root, "--once")
    assert (summary["groups"], summary["errors"]) == (1, 2)
    listed = commands.json("file", "list", "library", "--errors")
    errors = {row["path"]: row["error_code"] for row in [*listed["files"], *listed["scan_errors"]]}
    assert errors == {"b": "permission_denied", "closed": "permission_denied"}


def test_empty_files_are_counted_but_are_no_duplicates(
    first_commands: Commands, tmp_path: Path
) -> None:
    root = tmp_path / "library"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).touch()
    summary = first_commands.json("up", root, "--once")
    assert (summary["files"], summary["groups"], summary["errors"]) == (3, 0, 0)


def test_a_second_run_sees_only_what_changed(commands: Commands, tmp_path: Path) -> None:
    root = tmp_path / "library"
    root.mkdir()
    for number in range(30):
        (root / f"{number}.jpg").write_bytes(b"%d" % (number // 2))
    with commands.planes():
        first = commands.json("up", root, "--once")
        assert (first["files"], first["groups"]) == (30, 15)
        again = commands.json("up", root, "--once")
        assert _results(again) == _results(first)
        assert _last_scan(commands)["new_files"] == _last_scan(commands)["changed_files"] == 0

        (root / "0.jpg").unlink()
        (root / "2.jpg").write_bytes(b"another content")
        (root / "new.jpg").write_bytes(b"another content")
        last = commands.json("up", root, "--once")
        assert (last["files"], last["groups"]) == (30, 14)
        scan = _last_scan(commands)
        assert (scan["new_files"], scan["changed_files"], scan["missing_files"]) == (1, 1, 1)
        assert commands.groups({"library": root}) == tree.brute_force(root)


def test_one_file_reached_through_two_libraries_is_no_duplicate(
    commands: Commands, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    inner = outer / "inner"
    inner.mkdir(parents=True)
    (inner / "a").write_bytes(b"only once on the disk")
    os.link(inner / "a", outer / "linked")
    with commands.planes():
        summary = commands.json("up", outer, inner, "--once")
        assert (summary["files"], summary["groups"]) == (3, 0)
        (outer / "copy").write_bytes(b"only once on the disk")
        summary = commands.json("up", outer, inner, "--once")
    assert (summary["groups"], summary["duplicate_files"]) == (1, 1)


def test_a_library_whose_disk_is_gone_keeps_everything_that_is_known(
    commands: Commands, tmp_path: Path
) -> None:
    root = tmp_path / "library"
    root.mkdir()
    for name in ("a", "b"):
        (root / name).write_bytes(b"equal")
    with commands.planes():
        commands.json("up", root, "--once")
        root.rename(tmp_path / "away")
        failed = commands.run("scan", "library", code=1)
        assert "nothing was changed" in failed.stderr
        root.mkdir()
        failed = commands.run("scan", "library", code=1)
        assert "--accept-new-root" in failed.stderr
        assert len(commands.json("file", "list", "library")["files"]) == 2
        assert len(commands.json("duplicates", "list")["groups"]) == 1
        commands.run("scan", "library", "--accept-new-root")
        assert commands.json("file", "list", "library")["files"] == []
        assert commands.json("duplicates", "list")["groups"] == []


def test_what_lies_at_the_place_of_a_library_is_not_taken_for_its_files(
    commands: Commands, tmp_path: Path
) -> None:
    root, away = tmp_path / "library", tmp_path / "away"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_bytes(b"equal" if name < "c" else b"other")
    with commands.planes():
        commands.run("library", "add", "library", str(root))
        commands.run("scan", "library")
        root.rename(away)
        shutil.copytree(away, root)
        (root / "c").write_bytes(b"equal")
        shutil.copystat(away / "c", root / "c")
        commands.run("hash", code=1)
        assert "another one" in _why_the_last_job_failed(commands)
        shutil.rmtree(root)
        away.rename(root)
        commands.run("hash")
        (group,) = commands.json("duplicates", "list")["groups"]
        assert group["file_count"] == 2
        # Nor for damaged ones.
        root.rename(away)
        shutil.copytree(away, root)
        (root / "a").write_bytes(b"rotten")
        shutil.copystat(away / "a", root / "a")
        commands.run("verify", "library", code=1)
        assert "another one" in _why_the_last_job_failed(commands)
        assert commands.json("file", "list", "library", "--errors")["files"] == []


def _why_the_last_job_failed(commands: Commands) -> str:
    last = commands.json("job", "list")["jobs"][0]["name"].partition("/")[2]
    (item,) = commands.json("job", "show", last, "--items")["job"]["items"]
    return str(item["message"])


def _results(summary: dict[str, object]) -> dict[str, object]:
    names = ("files", "bytes", "groups", "duplicate_files", "reclaimable_bytes", "errors")
    return {name: summary[name] for name in names}


def _last_scan(commands: Commands) -> dict[str, int]:
    scan: dict[str, int] = commands.json("library", "show", "library")["library"]["last_scan"]
    return scan
