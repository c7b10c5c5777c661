"""A command that fails says why in a sentence, and in the exit code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner

from mediaplane.cli.app import app
from tests.support.databases import Copies


@pytest.fixture
def state(tmp_path: Path, sqlite_template: Copies) -> Path:
    """A state directory with a database that is there."""
    with sqlite_template() as url:
        shutil.copyfile(str(make_url(url).database), tmp_path / "mediaplane.db")
    tmp_path.chmod(0o700)
    return tmp_path


def _run(*words: str, state: Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*words, "--state", str(state)])
    return result.exit_code, result.output


def test_a_database_that_does_not_answer_is_no_bug_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDIAPLANE_DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
    code, said = _run("db", "status", state=tmp_path)
    assert code == 1
    assert said.startswith("Error: The database cannot be used: ")
    assert "Traceback" not in said


def test_a_database_of_another_kind_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDIAPLANE_DATABASE_URL", "mysql://host/name")
    code, said = _run("db", "upgrade", state=tmp_path)
    assert code == 1
    assert "use an SQLite file or PostgreSQL" in said


def test_a_state_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, said = _run("library", "list", state=tmp_path / "file")
    assert code == 1
    assert "choose another with --state" in said


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/none.sock"
    code, said = _run("library", "list", "--server", address, state=tmp_path)
    assert code == 1
    assert said.startswith(f"Error: No answer from {address}")


def test_with_a_server_given_no_plane_is_started(tmp_path: Path) -> None:
    state = tmp_path / "state"
    _run("library", "list", "--server", f"unix:{tmp_path}/none.sock", state=state)
    assert not state.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["file", "list", "\udcff"],
        ["duplicates", "list", "--library", "\udcff"],
        ["asset", "show", "libraries/x/assets/\udcff"],
        ["library", "add", "N\udcff", "/"],
        ["library", "add", "Name", "/", "--exclude", "\udcff*"],
        ["library", "set", "name", "--include", "\udcff*"],
        ["thumbnail", "clean", "\udcff"],
        ["job", "show", "\udcff"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_bytes_that_are_no_text_are_a_usage_error(words: list[str], state: Path) -> None:
    code, said = _run(*words, state=state)
    assert code == 2, said
    assert "\\xff" in said
    assert "is not UTF-8" in said


def test_a_pattern_that_is_no_text_says_how_it_can_be_written(state: Path) -> None:
    _, said = _run("library", "add", "Name", "/", "--exclude", "\udcfcber*", state=state)
    assert "\\xfcber* is not UTF-8" in said
    assert "? stands for such a byte" in said


def test_a_reader_that_has_gone_away_ends_the_command_quietly(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [sys.executable, "-c", "from mediaplane.cli import main; main()",
             "db", "upgrade", "--state", str(tmp_path)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")
