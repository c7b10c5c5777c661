"""A library goes to the trash, comes back and is forgotten, and its folder is as it was."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.support import tree
from tests.support.commands import Commands
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Two folders that share a content, each with duplicates of its own."""
    found = {name: tmp_path / name for name in ("photos", "films")}
    for name, folder in found.items():
        folder.mkdir()
        for copy in ("a", "b"):
            (folder / copy).write_bytes(name.encode())
        (folder / "shared").write_bytes(b"in both")
    return found


def test_a_library_leaves_and_comes_back_with_its_duplicates(
    commands: Commands, folders: dict[str, Path]
) -> None:
    before = {name: tree.snapshot(folder) for name, folder in folders.items()}
    with commands.planes():
        commands.json("up", *folders.values(), "--once")
        groups = commands.groups(folders)
        assert len(groups) == 3
        commands.run("library", "remove", "films")
        assert commands.groups(folders) == tree.brute_force(folders["photos"])
        commands.run("hash")
        assert len(commands.groups(folders)) == 1
        commands.run("library", "restore", "films")
        assert commands.groups(folders) == groups
        commands.run("library", "remove", "films")
        commands.run("trash", "empty", "--yes")
        assert commands.groups(folders) == tree.brute_force(folders["photos"])
        assert commands.json("trash", "list") == {"libraries": []}
        again = commands.json("up", folders["films"], "--once")
        assert again["groups"] == 3
    assert {name: tree.snapshot(folder) for name, folder in folders.items()} == before


@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 1), (b"y\n", 0)])
def test_on_a_terminal_the_trash_asks_before_it_is_emptied(
    sqlite_commands: Commands, folders: dict[str, Path], answer: bytes, left: int
) -> None:
    with sqlite_commands.planes():
        sqlite_commands.run("library", "add", "Photos", folders["photos"])
        sqlite_commands.run("library", "remove", "photos")
        keyboard, terminal = pty.openpty()
        os.write(keyboard, answer)
        done = subprocess.run(
            sqlite_commands.argv("trash", "empty"),
            env=sqlite_commands.environment,
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        os.close(keyboard)
        os.close(terminal)
        assert "Forget all that is known of photos for good?" in done.stderr
        assert done.returncode == left
        assert len(sqlite_commands.json("trash", "list")["libraries"]) == left
