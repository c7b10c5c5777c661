"""Libraries are set, paused, removed, restored and forgotten from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mediaplane.cli.app import app
from tests.support.control import SCAN, ControlPlane, serving_control
from tests.support.databases import Copies, opened
from tests.support.files import add_files


class Terminal:
    """Types commands for one control plane."""

    def __init__(self, control: ControlPlane) -> None:
        self.control = control

    def type(self, *words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*words, "--server", self.control.address])
        assert result.exit_code == code, result.output
        return result.output

    def json(self, *words: str) -> Any:
        return json.loads(self.type(*words, "--json"))

    def slugs(self, *words: str) -> list[str]:
        return [library["slug"] for library in self.json(*words)["libraries"]]


@pytest.fixture
def terminal(sqlite_template: Copies, tmp_path: Path) -> Iterator[Terminal]:
    """With one library. What the command line says does not depend on the kind of database."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as control,
    ):
        control.library("photos")
        yield Terminal(control)


def test_a_library_is_added_with_what_its_scans_look_at(terminal: Terminal) -> None:
    added = terminal.json(
        "library", "add", "Films", "/films", "--include", "*.mp4", "--include", "*.mkv",
        "--exclude", "cache", "--skip-hidden", "--cross-filesystems", "--min-size", "1M",
    )["library"]  # fmt: skip
    assert added["include_globs"] == ["*.mp4", "*.mkv"]
    assert added["exclude_globs"] == ["cache"]
    assert added["skips_hidden"] is added["crosses_filesystems"] is True
    assert added["min_size_bytes"] == 1 << 20
    shown = terminal.type("library", "show", "films")
    for words in ("*.mp4, *.mkv", "cache", "passed over", "entered", "1.0 MiB"):
        assert words in shown


def test_settings_change_one_by_one_and_back_to_nothing(terminal: Terminal) -> None:
    said = terminal.type("library", "set", "photos", "--exclude", "*.tmp", "--min-size", "4k")
    assert said == "Changed photos\n"
    terminal.type("library", "set", "photos", "--skip-hidden", "--name", "All photos")
    library = terminal.control.client.library("photos")
    assert (list(library.exclude_globs), library.min_size_bytes) == (["*.tmp"], 4096)
    assert (library.skips_hidden, library.display_name) == (True, "All photos")
    changed = terminal.json(
        "library", "set", "photos", "--exclude-none", "--no-skip-hidden", "--min-size", "0"
    )["library"]
    assert (changed["exclude_globs"], changed["skips_hidden"]) == ([], False)
    assert changed["min_size_bytes"] == 0


def test_what_is_hashed_and_how_is_chosen_per_library(terminal: Terminal) -> None:
    added = terminal.json("library", "add", "Films", "/films", "--hash-policy", "all")["library"]
    assert (added["hash_policy"], added["hash_algorithm"]) == ("all", "blake3")
    options = ("--hash-policy", "candidates", "--hash-algorithm", "sha256")
    changed = terminal.json("library", "set", "films", *options)["library"]
    assert (changed["hash_policy"], changed["hash_algorithm"]) == ("candidates", "sha256")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--hash-algorithm", "md5"], "'md5' is not one of"),
        ([], "say what to change"),
        (["--include", "*.jpg", "--include-all"], "not both"),
        (["--min-size", "many"], "is not a size"),
    ],
)
def test_a_change_that_says_nothing_clear_is_refused(
    terminal: Terminal, options: list[str], words: str
) -> None:
    before = terminal.control.client.library("photos")
    assert words in terminal.type("library", "set", "photos", *options, code=2)
    assert terminal.control.client.library("photos") == before


def test_a_library_is_paused_and_resumed(terminal: Terminal) -> None:
    assert terminal.type("library", "pause", "photos") == "Paused photos\n"
    assert "no, paused" in terminal.type("library", "show", "photos")
    assert terminal.type("library", "resume", "photos") == "Resumed photos\n"
    assert terminal.control.client.library("photos").is_active


def test_a_removed_library_is_in_the_trash_until_it_is_restored(terminal: Terminal) -> None:
    said = terminal.type("library", "remove", "photos")
    assert "no file in /media/photos is touched" in said
    assert "mediaplane library restore photos" in said
    assert "mediaplane trash empty photos" in said
    assert (terminal.slugs("library", "list"), terminal.slugs("trash", "list")) == ([], ["photos"])
    assert "/media/photos" in terminal.type("trash", "list")
    assert terminal.type("library", "restore", "photos") == "Restored photos\n"
    assert (terminal.slugs("library", "list"), terminal.slugs("trash", "list")) == (["photos"], [])


def test_a_library_that_is_being_scanned_is_not_removed(terminal: Terminal) -> None:
    terminal.control.create(SCAN, "libraries/photos")
    assert "mediaplane job cancel" in terminal.type("library", "remove", "photos", code=1)


def test_whoever_cannot_be_asked_must_say_yes(terminal: Terminal) -> None:
    terminal.type("library", "remove", "photos")
    assert "--yes" in terminal.type("trash", "empty", code=1)
    assert terminal.slugs("trash", "list") == ["photos"]


def test_the_trash_is_emptied_of_one_library_and_then_of_all(terminal: Terminal) -> None:
    for slug in ("films", "sounds"):
        terminal.control.library(slug)
    with terminal.control.database.control.write() as conn:
        add_files(conn, "films", [{}] * 3)
    for slug in ("photos", "films", "sounds"):
        terminal.type("library", "remove", slug)
    said = terminal.type("trash", "empty", "films", "--yes")
    assert said == "Forgot films: 4 rows. No file in /media/films was touched.\n"
    assert terminal.slugs("trash", "list") == ["photos", "sounds"]
    assert terminal.json("trash", "empty", "--yes") == {
        "libraries": [{"slug": "photos", "removed_rows": 1}, {"slug": "sounds", "removed_rows": 1}]
    }
    assert terminal.slugs("trash", "list") == []


def test_emptying_again_finds_nothing_and_fails_nothing(terminal: Terminal) -> None:
    assert terminal.type("trash", "empty", "--yes") == "The trash is empty.\n"
    assert terminal.type("trash", "empty", "films") == "There is no 'films' in the trash.\n"
    assert terminal.json("trash", "empty") == {"libraries": []}


def test_a_library_that_is_in_use_is_not_forgotten(terminal: Terminal) -> None:
    said = terminal.type("trash", "empty", "photos", "--yes", code=1)
    assert "mediaplane library remove photos" in said
    assert terminal.slugs("library", "list") == ["photos"]
