"""Both planes refuse a database with another schema than theirs, in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from mediaplane.protocol import migration
from tests.support.commands import Commands
from tests.support.waiting import PATIENCE_SECONDS


@pytest.mark.parametrize("module", ["control_plane", "data_plane"])
@pytest.mark.parametrize("revision", [None, "0010_protocol_values"])
def test_a_plane_refuses_another_schema_and_says_what_to_do(
    first_commands: Commands, module: str, revision: str | None
) -> None:
    first_commands.state.mkdir()
    if revision:
        migration.upgrade(f"sqlite:///{first_commands.state}/mediaplane.db", revision)
    done = subprocess.run(
        [sys.executable, "-m", module],
        env=first_commands.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "mediaplane db upgrade" in done.stderr


@pytest.mark.parametrize("arguments", [("up", "--once"), ("library", "list")])
def test_a_command_that_starts_its_planes_upgrades_an_older_database(
    sqlite_commands: Commands, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    url = f"sqlite:///{sqlite_commands.state}/mediaplane.db"
    library = tmp_path / "library"
    library.mkdir()
    (library / "a").touch()
    sqlite_commands.run("up", "--once", library)
    migration.downgrade(url, "0013_library_settings")
    sqlite_commands.run(*arguments)
    assert migration.is_current(url)
    assert [row["slug"] for row in sqlite_commands.json("library", "list")["libraries"]]
