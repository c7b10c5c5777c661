"""Every command explains itself, and quickly."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mediaplane.cli.app import app
from mediaplane.cli.root import make_app


def _commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name)


COMMANDS = sorted(_commands(get_command(app)))
LISTINGS = [words for words in COMMANDS if words[-1] in {"list", "files", "frames", "checkpoints"}]


def _help(words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], terminal_width=200)
    assert result.exit_code == 0
    return result.output


def test_the_commands_are_the_documented_ones() -> None:
    assert {" ".join(words) for words in COMMANDS} == {
        "up", "scan", "hash", "verify", "control-plane", "data-plane", "doctor",
        "library add", "library list", "library show", "library set", "library pause",
        "library resume", "library remove", "library restore", "trash list", "trash empty",
        "file list", "asset list", "asset show", "asset frames", "asset get", "asset retry",
        "thumbnail get", "thumbnail list", "thumbnail clean",
        "duplicates list", "duplicates files", "duplicates export",
        "duplicates verify",
        "job list", "job show", "job watch", "job events", "job cancel", "job retry", "job probe",
        "schedule list", "schedule show", "schedule add", "schedule set", "schedule remove",
        "schedule run", "schedule enable", "schedule disable",
        "worker list", "worker pause", "worker resume", "worker shutdown", "worker dump",
        "token create", "token list", "token revoke", "audit list",
        "cache sweep", "db upgrade", "db status", "db grant", "db checkpoint", "db checkpoints",
        "db backup", "db restore",
    }  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_has_an_example_of_its_own_command(words: tuple[str, ...]) -> None:
    examples = _help(words).partition("Example")[2]
    assert f"mediaplane {' '.join(words)}" in examples


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_takes_the_state_directory(words: tuple[str, ...]) -> None:
    assert "--state" in _help(words)


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_every_listing_has_json_and_limit(words: tuple[str, ...]) -> None:
    text = _help(words)
    assert "--json" in text
    assert "--limit" in text


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_that_is_loaded_alone_is_the_same(words: tuple[str, ...]) -> None:
    alone = CliRunner().invoke(make_app(words), [*words, "--help"], terminal_width=200)
    assert alone.output == _help(words)


def test_words_that_begin_with_no_command_have_all_of_them() -> None:
    for words in ([], ["--help"], ["--state", "up", "job", "list"], ["nonsense"]):
        assert sorted(_commands(get_command(make_app(words)))) == COMMANDS


def test_help_loads_neither_grpc_nor_the_database() -> None:
    program = "from mediaplane.cli.app import app; app(['--help'], standalone_mode=False)"
    assert _loaded(program, {"grpc", "sqlalchemy", "alembic", "google", "rich"}) == "[]"


def test_a_command_loads_no_other_command() -> None:
    program = "from mediaplane.cli.root import make_app; make_app(['up', 'folder'])"
    others = {"library", "scan", "job", "duplicates", "planes", "root"}
    found = _loaded(program, {f"mediaplane.cli.{name}" for name in others})
    assert found == "['mediaplane.cli.root']"


def test_a_command_that_talks_loads_nothing_of_asyncio_before_it_is_used() -> None:
    program = (
        "from mediaplane.cli.late import load_late; load_late();"
        "from mediaplane.cli import campaign, pipeline; from mediaplane import planes"
    )
    unused = {"asyncio.events", "grpc.aio._channel", "google.protobuf.text_format", "grpc_status"}
    assert _loaded(program, unused | {"ssl", "sqlalchemy"}) == "[]"
    used = "; import asyncio; asyncio.run(asyncio.sleep(0))"
    assert _loaded(program + used, unused) == "['asyncio.events']"


def _loaded(program: str, modules: set[str]) -> str:
    """Which of some modules a program loads."""
    program += f"; import sys; print(sorted({modules!r} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()[-1]


def test_a_command_that_does_not_exist_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


def test_a_state_that_does_not_exist_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["job", "list", "--only", "finished"])
    assert result.exit_code == 2
    assert "pending, running" in result.output
