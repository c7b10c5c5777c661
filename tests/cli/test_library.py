"""One library as the command line shows it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mediaplane.cli.app import app
from tests.support.control import ControlPlane, serving_control
from tests.support.databases import Copies, opened
from tests.support.files import add_files, add_library, content, summarise_all
from tests.support.rows import Rows


@pytest.fixture
def control(sqlite_template: Copies, tmp_path: Path) -> Iterator[ControlPlane]:
    """With photos, of which some have copies among the films, and a scan of them."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        with database.control.write() as conn:
            photos, films = add_library(conn, "photos"), add_library(conn, "films")
            here = [content(1), content(1), content(2), content(3) | {"error_code": "io_error"}]
            add_files(conn, photos, [row | {"size_bytes": 1024} for row in here])
            add_files(conn, films, [row | {"size_bytes": 1024} for row in (content(2), content(4))])
            add_files(conn, films, [content(4) | {"size_bytes": 1024, "rel_path": b"only here"}])
            summarise_all(conn)
            counts = {"seen_files": 4, "seen_bytes": 4096, "new_files": 3, "missing_files": 7}
            Rows(conn).add("scan_sessions", library_id="photos", status="succeeded", **counts)
        yield plane


def show(control: ControlPlane, *words: str) -> str:
    result = CliRunner().invoke(
        app, ["library", "show", "photos", "--server", control.address, *words]
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_a_library_is_shown_with_its_files_and_duplicates(control: ControlPlane) -> None:
    library = json.loads(show(control, "--json"))["library"]
    assert library["slug"] == "photos"
    assert library["figures"] == {
        "files": 4,
        "bytes": 4096,
        "errors": 1,
        "groups": 2,
        "duplicate_files": 2,
        "reclaimable_bytes": 2048,
    }
    assert (library["last_scan"]["new_files"], library["last_scan"]["missing_files"]) == (3, 7)


def test_people_see_the_same(control: ControlPlane) -> None:
    lines = dict(line.split("  ", 1) for line in show(control).splitlines())
    shown = {title: value.strip() for title, value in lines.items()}
    assert shown["Path"] == "/media/photos"
    assert shown["Files"] == "4, 4.0 KiB"
    assert shown["Duplicates"] == "2 extra copies in 2 groups"
    assert shown["Reclaimable"] == "2.0 KiB"
    assert (shown["Errors"], shown["New"], shown["Missing"]) == ("1", "3", "7")
    assert shown["Last scan"].startswith("succeeded, began ")
