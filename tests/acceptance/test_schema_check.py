"""Both planes refuse a database with another schema than theirs, in one line."""

import subprocess
import sys

import pytest

from mediaplane.protocol import migration
from tests.support.commands import Commands


@pytest.mark.parametrize("module", ["control_plane", "data_plane"])
@pytest.mark.parametrize("revision", [None, "0010_protocol_values"])
def test_a_plane_refuses_another_schema_and_says_what_to_do(
    sqlite_commands: Commands, module: str, revision: str | None
) -> None:
    sqlite_commands.state.mkdir()
    if revision:
        migration.upgrade(f"sqlite:///{sqlite_commands.state}/mediaplane.db", revision)
    done = subprocess.run(
        [sys.executable, "-m", module],
        env=sqlite_commands.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "mediaplane db upgrade" in done.stderr
