"""Workers are listed and told what to do by their id, by its beginning, or all at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from mediaplane.cli.app import app
from mediaplane.protocol.tables import worker_status
from tests.support.commands import Commands
from tests.support.control import serving_control
from tests.support.databases import Copies, Databases, opened
from tests.support.rows import Rows

WORKERS = {
    "alpha-3f2a9c0d1e2b": "processing",
    "alpha-3f77aa00bb11": "idle",
    "alpha-3f": "paused",
    "beta-000000000001": "idle",
    "beta-000000000002": "offline",
}
RUNNING = [worker_id for worker_id, state in WORKERS.items() if state != "offline"]


class Terminal:
    """Types commands for one control plane, whose workers are rows that nobody obeys."""

    def __init__(self, address: str, database: Databases) -> None:
        self.address = address
        self.database = database

    def add(self, workers: dict[str, str]) -> None:
        with self.database.control.write() as conn:
            for worker_id, state in workers.items():
                Rows(conn).add("worker_status", worker_id=worker_id, state=state)

    def type(self, *words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["worker", *words, "--server", self.address])
        assert result.exit_code == code, result.output
        return result.output

    def commands(self) -> dict[str, str]:
        """What the workers have been told, those that were told something."""
        with self.database.control.read() as conn:
            query = select(worker_status).where(worker_status.c.commanded_at.is_not(None))
            return {row["worker_id"]: row["command"] for row in conn.execute(query).mappings()}


@pytest.fixture
def empty(sqlite_template: Copies, tmp_path: Path) -> Iterator[Terminal]:
    """Without any worker. What the command line says does not depend on the kind of database."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        yield Terminal(plane.address, database)


@pytest.fixture
def terminal(empty: Terminal) -> Terminal:
    empty.add(WORKERS)
    return empty


@pytest.mark.parametrize(
    ("verb", "stored", "consequence"),
    [
        ("pause", "pause", "will finish what it has in hand and then pause."),
        ("resume", "resume", "will take work again."),
        ("shutdown", "shutdown", "will finish what it has in hand and then exit."),
        ("dump", "forensic_dump", "will write its flight log to logs/forensics"),
    ],
)
def test_a_command_reaches_its_worker_and_says_what_will_happen(
    terminal: Terminal, verb: str, stored: str, consequence: str
) -> None:
    said = terminal.type(verb, "alpha-3f2a9c0d1e2b")
    assert said.startswith(f"alpha-3f2a9c0d1e2b {consequence}")
    assert terminal.commands() == {"alpha-3f2a9c0d1e2b": stored}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("alpha-3f2", "alpha-3f2a9c0d1e2b"),
        ("workers/alpha-3f2", "alpha-3f2a9c0d1e2b"),
        # In full, although others begin with it.
        ("alpha-3f", "alpha-3f"),
        # The other one is offline.
        ("beta", "beta-000000000001"),
    ],
)
def test_the_beginning_of_an_id_is_enough_when_only_one_running_worker_has_it(
    terminal: Terminal, given: str, meant: str
) -> None:
    terminal.type("pause", given)
    assert terminal.commands() == {meant: "pause"}


def test_a_beginning_that_several_have_lists_them_and_tells_nobody(terminal: Terminal) -> None:
    said = terminal.type("shutdown", "alpha", code=1)
    assert "'alpha' may be any of 3 workers" in said
    assert [one for one in WORKERS if one in said.split()] == RUNNING[:3]
    assert terminal.commands() == {}


def test_a_beginning_that_nobody_has_says_where_to_look(terminal: Terminal) -> None:
    said = terminal.type("pause", "gamma", code=1)
    assert "'gamma'" in said
    assert "mediaplane worker list" in said
    assert terminal.commands() == {}


def test_a_worker_that_is_offline_is_named_as_such(terminal: Terminal) -> None:
    said = terminal.type("pause", "beta-000000000002", code=1)
    assert "beta-000000000002 is offline" in said
    assert terminal.commands() == {}


def test_all_are_those_that_are_not_offline(terminal: Terminal) -> None:
    said = terminal.type("pause", "--all")
    assert [line.split()[0] for line in said.splitlines()] == sorted(RUNNING)
    assert terminal.commands() == dict.fromkeys(RUNNING, "pause")


@pytest.mark.parametrize("verb", ["pause", "resume", "shutdown", "dump"])
@pytest.mark.parametrize("words", [[], [""], ["workers/"], ["alpha-3f2", "--all"]])
def test_neither_a_worker_nor_all_and_both_are_usage_errors(
    terminal: Terminal, verb: str, words: list[str]
) -> None:
    assert "--all" in terminal.type(verb, *words, code=2)
    assert terminal.commands() == {}


@pytest.mark.parametrize("words", [["--all"], ["alpha"]])
def test_without_a_running_worker_it_is_said_how_to_start_one(
    empty: Terminal, words: list[str]
) -> None:
    empty.add({"alpha-000000000000": "offline"})
    said = empty.type("pause", *words, code=1)
    assert "No worker is running" in said
    assert "mediaplane data-plane" in said


@pytest.mark.parametrize("words", [["--all"], ["beta"]])
def test_json_has_the_workers_that_were_told(terminal: Terminal, words: list[str]) -> None:
    told = json.loads(terminal.type("dump", *words, "--json"))["workers"]
    assert {one["name"] for one in told} == {f"workers/{name}" for name in terminal.commands()}
    assert {one["command"] for one in told} == {"forensic_dump"}
    assert all(one["command_time"] for one in told)


def test_the_listing_shows_what_was_asked(terminal: Terminal) -> None:
    terminal.type("pause", "beta")
    lines = terminal.type("list").splitlines()
    assert len(lines) == 1 + len(WORKERS)
    (told,) = [line for line in lines if line.startswith("beta-000000000001")]
    assert told.split()[1:] == ["idle", "pause"]


def test_with_no_server_and_no_data_plane_the_answer_is_clear(tmp_path: Path) -> None:
    failed = Commands(tmp_path / "state").run("worker", "shutdown", "--all", code=1)
    assert "No worker is running" in failed.stderr
