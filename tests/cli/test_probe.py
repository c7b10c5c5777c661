"""A probe goes the whole way of a job, and says how it fared."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mediaplane.cli.app import app
from tests.support.control import ControlPlane, serving_control
from tests.support.databases import Copies, opened
from tests.support.planes import Worker
from tests.support.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture
def control(sqlite_template: Copies, tmp_path: Path) -> Iterator[ControlPlane]:
    """With a worker. What the command line says does not depend on the kind of database."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
        Worker(database.data, "box-1"),
    ):
        yield plane


def probe(control: ControlPlane, *words: str) -> Result:
    return CliRunner().invoke(app, ["job", "probe", *words, "--server", control.address])


def probed(control: ControlPlane, *words: str) -> dict[str, Any]:
    result = probe(control, *words, "--json")
    assert result.exit_code == 0, result.output
    job: dict[str, Any] = json.loads(result.stdout)["job"]
    return job


def test_a_probe_says_who_took_it_how_long_it_waited_and_how_long_it_took(
    control: ControlPlane,
) -> None:
    result = probe(control)
    assert result.exit_code == 0
    told = r"jobs/1: taken by box-1 after \d+(\.\d)? m?s, done in \d+(\.\d)? m?s\.\n"
    assert re.fullmatch(told, result.stdout)


def test_a_probe_of_items_says_how_many_were_done(control: ControlPlane) -> None:
    assert probe(control, "--items", "3").stdout.startswith("jobs/1 with 3 items: taken by box-1")
    assert probe(control, "--items", "1").stdout.startswith("jobs/2 with 1 item: taken by")


def test_a_probe_as_json_is_the_job(control: ControlPlane) -> None:
    job = probed(control, "--seconds", "0.05", "--items", "2")
    assert (job["kind"], job["state"], job["worker"]) == ("probe", "completed", "box-1")
    assert (job["completed_items"], job["total_items"]) == (2, 2)
    assert job["probe"] == {"duration": "0.050s", "items": 2, "scratch_bytes": 0}


def test_a_probe_that_is_not_done_says_why_and_fails(control: ControlPlane) -> None:
    def cancel_once_it_runs() -> None:
        running = eventually(lambda: list(control.client.jobs(["running"])))
        control.client.cancel_job(running[0].name)

    with ThreadPoolExecutor(1) as pool:
        somebody = pool.submit(cancel_once_it_runs)
        result = probe(control, "--seconds", "60")
        somebody.result(timeout=PATIENCE_SECONDS)
    assert (result.exit_code, result.stdout) == (1, "jobs/1 cancelled\n")


@pytest.mark.parametrize(
    "words", [["--seconds", "-1"], ["--seconds", "3601"], ["--items", "10001"]]
)
def test_what_no_probe_can_do_is_a_usage_error(control: ControlPlane, words: list[str]) -> None:
    result = probe(control, *words)
    assert result.exit_code == 2
    assert words[0] in result.stderr


def test_probes_can_be_listed_by_their_kind(control: ControlPlane) -> None:
    probe(control)
    arguments = ["job", "list", "--kind", "probe", "--json", "--server", control.address]
    listed = json.loads(CliRunner().invoke(app, arguments).stdout)["jobs"]
    assert [job["id"] for job in listed] == [1]
