"""`mediaplane up --watch`: what changes in a folder is known soon after, without a command."""

import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support import tree
from tests.support.commands import Commands
from tests.support.waiting import eventually

DEADLINE_SECONDS = 180.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    (root / "folder").mkdir(parents=True)
    for name in ("folder/a", "folder/b"):
        (root / name).write_bytes(b"equal")
    (root / "single").write_bytes(b"another content")
    return root


class Watching:
    """A process of `up --watch --json`, and what it has said so far."""

    def __init__(self, argv: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.documents: list[dict[str, Any]] = []
        self.told: list[str] = []
        self._threads = [
            threading.Thread(target=self._read_documents),
            threading.Thread(target=self._read_told),
        ]
        for thread in self._threads:
            thread.start()

    def rescan(self, number: int) -> dict[str, Any]:
        """Return what the rescan of this number found, once it is done; 0 is the first scan."""
        eventually(lambda: len(self.documents) > number, DEADLINE_SECONDS)
        return self.documents[number]

    def wait_until_told(self, words: str) -> str:
        def line() -> str:
            assert self.process.poll() is None, self.told
            return next((line for line in self.told if words in line), "")

        return eventually(line, DEADLINE_SECONDS)

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        code = self.process.wait(DEADLINE_SECONDS)
        for thread in self._threads:
            thread.join()
        assert code == 0, self.told
        assert "Traceback" not in "".join(self.told)

    def _read_documents(self) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            self.documents.extend(map(json.loads, lines))

    def _read_told(self) -> None:
        assert self.process.stderr
        with self.process.stderr as lines:
            self.told.extend(lines)


@contextmanager
def watching(
    commands: Commands,
    *arguments: str | Path,
    prefix: list[str] | None = None,
    end: signal.Signals = signal.SIGINT,
) -> Iterator[Watching]:
    argv = [*(prefix or []), *commands.argv("up", *arguments, "--watch", "--json")]
    found = Watching(argv, commands.environment)
    try:
        found.wait_until_told("Ctrl-C stops")
        yield found
        found.end(end)
    finally:
        found.process.kill()


def place(path: Path, content: bytes) -> None:
    """Make a file that no scan can see before it is whole."""
    with TemporaryDirectory(dir=outside(path)) as draft:
        (Path(draft) / "file").write_bytes(content)
        (Path(draft) / "file").rename(path)


def place_folder(path: Path, content: bytes) -> None:
    """Make a folder with a copy in it that no scan can see before it is whole."""
    with TemporaryDirectory(dir=outside(path)) as draft:
        (Path(draft) / "folder").mkdir()
        (Path(draft) / "folder" / "copy").write_bytes(content)
        (Path(draft) / "folder").rename(path)


def outside(path: Path) -> Path:
    """Return a folder of the same disk outside of the library that a path lies in."""
    return next(folder.parent for folder in path.parents if folder.name in ("library", "other"))


def scans(commands: Commands) -> int:
    return len(commands.json("job", "list", "--kind", "scan")["jobs"])


def paths(commands: Commands) -> list[str]:
    return sorted(row["path"] for row in commands.json("file", "list", "library")["files"])


def test_a_new_duplicate_becomes_a_group_without_a_command(commands: Commands, root: Path) -> None:
    with watching(commands, root, end=signal.SIGTERM) as process:
        assert process.rescan(0)["groups"] == 1
        place_folder(root / "new folder", b"another content")
        found = process.rescan(1)
        assert (found["library"], found["new_files"], found["groups"]) == ("library", 1, 2)
        assert commands.groups({"library": root}) == tree.brute_force(root)
        place(root / "new folder" / "copy", b"and a third one")
        found = process.rescan(2)
        assert (found["changed_files"], found["groups"]) == (1, 1)


def test_a_rename_is_followed(sqlite_commands: Commands, root: Path) -> None:
    with watching(sqlite_commands, root) as process:
        (root / "folder").rename(root / "renamed")
        process.rescan(1)
        assert paths(sqlite_commands) == ["renamed/a", "renamed/b", "single"]
        place(root / "renamed" / "c", b"equal")
        assert process.rescan(2)["duplicate_files"] == 2


def test_a_deleted_folder_takes_its_duplicates_along(sqlite_commands: Commands, root: Path) -> None:
    with watching(sqlite_commands, root) as process:
        shutil.rmtree(root / "folder")
        found = process.rescan(1)
        assert (found["missing_files"], found["groups"]) == (2, 0)


def test_of_two_libraries_only_the_one_that_changed_is_scanned(
    sqlite_commands: Commands, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(b"somewhere else")
    with watching(sqlite_commands, root, other) as process:
        place(other / "copy", b"somewhere else")
        assert process.rescan(1)["library"] == "other"
        assert scans(sqlite_commands) == 3


def test_work_in_a_state_directory_inside_the_library_leads_to_no_scan(
    root: Path,
) -> None:
    commands = Commands(root / "state")
    with watching(commands, root) as process:
        # Writes to the database, and then leaves it quiet for longer than a rescan waits.
        commands.run("job", "probe", "--seconds", "4")
        assert scans(commands) == len(process.documents) == 1
        place(root / "copy", b"equal")
        assert process.rescan(1)["duplicate_files"] == 2


def test_with_an_interval_changes_are_found_and_scans_without_any_say_nothing(
    sqlite_commands: Commands, root: Path
) -> None:
    with watching(sqlite_commands, root, "--watch-interval", "1") as process:
        eventually(lambda: scans(sqlite_commands) >= 3, DEADLINE_SECONDS)
        assert len(process.documents) == 1, process.documents
        place(root / "copy", b"equal")
        assert process.rescan(1)["duplicate_files"] == 2, process.documents


def test_a_root_that_vanishes_is_told_once_and_noticed_when_it_is_back(
    sqlite_commands: Commands, root: Path, tmp_path: Path
) -> None:
    with watching(sqlite_commands, root) as process:
        root.rename(tmp_path / "away")
        process.wait_until_told("nothing was changed")
        assert "nothing was changed" in process.rescan(1)["failures"][0]
        (tmp_path / "away" / "copy").write_bytes(b"equal")
        (tmp_path / "away").rename(root)
        found = process.rescan(2)
        assert (found["new_files"], found["missing_files"], found["failures"]) == (1, 0, [])
    assert sum("Error:" in line for line in process.told) == 1


def test_what_changed_while_a_library_was_paused_is_found_once_it_is_not(
    sqlite_commands: Commands, root: Path
) -> None:
    with watching(sqlite_commands, root) as process:
        sqlite_commands.run("library", "pause", "library")
        place(root / "copy", b"equal")
        assert "paused" in process.rescan(1)["failures"][0]
        sqlite_commands.run("library", "resume", "library")
        found = process.rescan(2)
        assert (found["new_files"], found["failures"]) == (1, [])
    assert sum("Error:" in line for line in process.told) == 1


@pytest.mark.parametrize("limit", [1, 2])
def test_where_the_system_allows_no_more_watches_that_is_told_and_scans_go_on(
    sqlite_commands: Commands, root: Path, limit: int
) -> None:
    """With 1 the library is too large from the beginning, with 2 after one more folder."""
    allow = f"echo {limit} > /proc/sys/user/max_inotify_watches"
    namespace = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    if subprocess.run([*namespace, allow], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace with a limit of its own can be made here")
    prefix = [*namespace, f'{allow} && exec "$@"', "sh"]
    with watching(sqlite_commands, root, prefix=prefix) as process:
        has_told = any("max_user_watches" in line for line in process.told)
        assert has_told == (limit == 1)
        if limit == 2:
            place_folder(root / "one too many", b"equal")
            assert process.rescan(1)["duplicate_files"] == 2
        assert "scanned every 60 s" in process.wait_until_told("max_user_watches")
