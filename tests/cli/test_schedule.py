"""Schedules as people keep them from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mediaplane.cli.app import app
from tests.support.control import ControlPlane, serving_control
from tests.support.databases import Copies, opened


class Terminal:
    """Types commands for one control plane."""

    def __init__(self, control: ControlPlane) -> None:
        self.control = control

    def type(self, *words: str, code: int = 0) -> str:
        given = ["schedule", *words, "--server", self.control.address]
        result = CliRunner().invoke(app, given)
        assert result.exit_code == code, result.output
        return result.output

    def json(self, *words: str) -> Any:
        return json.loads(self.type(*words, "--json"))


@pytest.fixture
def terminal(sqlite_template: Copies, tmp_path: Path) -> Iterator[Terminal]:
    """What the command line says does not depend on the kind of database."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        yield Terminal(plane)


def test_a_schedule_is_added_and_its_next_three_times_are_told(terminal: Terminal) -> None:
    text = terminal.type("add", "nightly", "rescan", "30 2 * * *", "--time-zone", "Europe/Berlin")
    first, second = text.splitlines()
    assert first == "Added nightly"
    assert second.startswith("Next runs: ")
    assert second.count(":30:00") == 3


def test_all_schedules_are_listed_with_what_they_do_and_when(terminal: Terminal) -> None:
    terminal.control.library("films")
    terminal.type("add", "films", "verify", "@monthly", "--library", "films", "--disabled")
    rows = [line.split() for line in terminal.type("list").splitlines()]
    assert ["films", "verify", "films", "@monthly", "UTC", "disabled"] in rows
    assert ["rescan", "rescan", "all", "0", "3", "*", "*", "*", "UTC", "disabled"] in rows
    listed = terminal.json("list")["schedules"]
    assert {one["name"] for one in listed} > {"films", "rescan", "retention"}
    assert len(terminal.json("list", "--limit", "2")["schedules"]) == 2


def test_one_schedule_is_shown_with_its_fields(terminal: Terminal) -> None:
    terminal.type("add", "nightly", "rescan", "@daily", "--missed-runs", "skip")
    lines = dict(line.split("  ", 1) for line in terminal.type("show", "nightly").splitlines())
    shown = {title: value.strip() for title, value in lines.items()}
    assert shown.items() >= {
        ("Action", "rescan"), ("Library", "all"), ("Cron", "@daily"), ("Time zone", "UTC"),
        ("Missed runs", "skip"), ("Enabled", "yes"), ("Outcome", "none"),
    }  # fmt: skip
    assert shown["Next runs"].count(",") == 2
    found = terminal.json("show", "schedules/nightly")["schedule"]
    assert (found["name"], found["missed_runs"], len(found["upcoming_run_times"])) == (
        "nightly",
        "skip",
        3,
    )


def test_a_schedule_is_changed_enabled_disabled_and_removed(terminal: Terminal) -> None:
    terminal.control.library("films")
    terminal.type("add", "nightly", "rescan", "@daily")
    changed = terminal.json("set", "nightly", "--library", "films", "--cron", "0 5 * * *")
    assert changed["schedule"]["library"] == "libraries/films"
    assert changed["schedule"]["cron"] == "0 5 * * *"
    assert terminal.json("set", "nightly", "--all-libraries")["schedule"]["library"] == ""
    assert "turn it on: mediaplane schedule enable nightly" in terminal.type("disable", "nightly")
    assert terminal.json("enable", "nightly")["schedule"]["is_enabled"]
    assert terminal.type("remove", "nightly") == "Removed nightly\n"
    assert "There is no schedule 'nightly'" in terminal.type("show", "nightly", code=1)


def test_a_run_now_says_how_to_follow_its_job(terminal: Terminal) -> None:
    assert terminal.type("run", "sweep").splitlines() == [
        "Began sweep: running",
        "Next: mediaplane job watch 1",
    ]
    assert "is still under way" in terminal.type("run", "sweep", code=1)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["61 2 * * *"], "minute 61 is out of range; give 0 to 59."),
        (["30 2 * *"], "has 4 fields instead of 5"),
        (["@daily", "--time-zone", "Berlin"], "'Berlin' is no time zone"),
        (["@daily", "--library", "nowhere"], "There is no library 'nowhere'"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_in_words(
    terminal: Terminal, words: list[str], complaint: str
) -> None:
    assert complaint in terminal.type("add", "nightly", "rescan", *words, code=1)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["add", "nightly", "dance", "@daily"], "'dance' is not one of"),
        (["set", "rescan"], "say what to change"),
        (["set", "rescan", "--library", "a", "--all-libraries"], "one library or all, not both"),
    ],
)
def test_a_wrong_use_is_a_usage_error(terminal: Terminal, words: list[str], complaint: str) -> None:
    assert complaint in terminal.type(*words, code=2)
