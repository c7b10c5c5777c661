"""The promise: a byte that a disk has lost is found, and nothing else is called damaged."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Commands
from tests.support.damage import flip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two files of equal content and one of its own."""
    root = tmp_path / "library"
    root.mkdir()
    for name, content in (("a", b"equal"), ("b", b"equal"), ("alone", b"only here")):
        (root / name).write_bytes(content * 1000)
    return root


def hashed(commands: Commands, root: Path) -> None:
    """Scan a folder and hash every file of it."""
    with commands.planes():
        commands.run("library", "add", "Library", root, "--hash-policy", "all")
        commands.run("scan", "library")
        commands.run("hash", "library")


def verified(commands: Commands, code: int = 0) -> list[str]:
    return commands.run("verify", "library", code=code).stdout.splitlines()


def verdicts(commands: Commands) -> dict[str, str]:
    files = commands.json("file", "list", "library", "--errors")["files"]
    return {file["path"]: file["error_code"] for file in files}


def test_a_flipped_byte_is_found_and_forgotten_once_the_file_is_restored(
    commands: Commands, root: Path
) -> None:
    with commands.planes():
        hashed(commands, root)
        assert verified(commands) == ["3 files verified, 0 damaged, 0 unreadable"]
        flip(root / "b")
        flip(root / "alone")
        assert verified(commands, code=1) == [
            "3 files verified, 2 damaged, 0 unreadable",
            "  library: alone",
            "  library: b",
            "    another copy: library: a",
            "Restore them from a backup or another copy, then verify again.",
        ]
        assert verdicts(commands) == {"alone": "bit_rot", "b": "bit_rot"}
        flip(root / "b")
        flip(root / "alone")
        assert verified(commands) == ["3 files verified, 0 damaged, 0 unreadable"]
        assert verdicts(commands) == {}


def test_files_that_changed_or_cannot_be_read_are_not_damaged(
    sqlite_commands: Commands, root: Path
) -> None:
    hashed(sqlite_commands, root)
    os.utime(root / "a", ns=(1, 1))
    (root / "b").chmod(0)
    counts, outdated = verified(sqlite_commands)
    assert counts == "1 file verified, 0 damaged, 1 unreadable"
    assert outdated.startswith("1 file changed since the last scan")
    assert verdicts(sqlite_commands) == {"b": "permission_denied"}


def test_the_json_document_names_the_job_and_the_damaged_files(
    sqlite_commands: Commands, root: Path
) -> None:
    hashed(sqlite_commands, root)
    flip(root / "alone")
    done = sqlite_commands.run("verify", "library", "--json", code=1)
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["job"]["kind"], document["job"]["state"]) == ("verify", "completed")
    assert [file["path"] for file in document["damaged_files"]] == ["alone"]
    assert document["unreadable_files"] == []


def test_many_damaged_files_are_not_all_listed(sqlite_commands: Commands, root: Path) -> None:
    for number in range(25):
        (root / f"many-{number}").write_bytes(b"%d" % number)
    hashed(sqlite_commands, root)
    for number in range(25):
        flip(root / f"many-{number}")
    counts, *listed, more, _advice = verified(sqlite_commands, code=1)
    assert counts == "28 files verified, 25 damaged, 0 unreadable"
    assert len(listed) == 20
    assert more == "  and 5 more: mediaplane file list library --errors"


def test_a_library_without_hashes_is_told_how_to_get_them(
    sqlite_commands: Commands, root: Path
) -> None:
    sqlite_commands.run("library", "add", "Library", root)
    (told,) = verified(sqlite_commands)
    assert "mediaplane hash library" in told
    assert "mediaplane library set library --hash-policy all" in told


def test_a_library_whose_disk_is_gone_is_not_verified(
    sqlite_commands: Commands, root: Path
) -> None:
    hashed(sqlite_commands, root)
    root.rename(root.with_name("away"))
    failed = sqlite_commands.run("verify", "library", code=1)
    assert "failed: 1 items failed" in failed.stderr
    assert failed.stdout == "0 files verified, 0 damaged, 0 unreadable\n"


def test_a_verify_job_can_be_left_to_a_data_plane(sqlite_commands: Commands, root: Path) -> None:
    hashed(sqlite_commands, root)
    said = sqlite_commands.run("verify", "library", "--no-wait").stdout
    assert said.startswith("Admitted jobs/")
    newest = sqlite_commands.json("job", "list", "--limit", "1")["jobs"][0]
    assert (newest["kind"], newest["state"]) == ("verify", "pending")
