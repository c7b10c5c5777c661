"""Duplicates on the command line: lists, exports for other programs, and the check of groups."""

import base64
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner, Result

from mediaplane.cli.app import app
from mediaplane.cli.export import Format, export
from mediaplane.cli.sizes import parse_size
from tests.support.control import ControlPlane, serving_control
from tests.support.databases import Copies, opened
from tests.support.files import add_files, add_library, content, digest, summarise_all
from tests.support.rows import Rows

HOSTILE = [b"a\nb.jpg", b"\xff\\n.jpg", 'ü,"quoted".jpg'.encode()]
MANY, LARGE = f"blake3:{digest(1).hex()}", f"blake3:{digest(2).hex()}"


@pytest.fixture
def control(sqlite_template: Copies, tmp_path: Path) -> Iterator[ControlPlane]:
    """With three small pictures of one content, and two large videos of another."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        with database.control.write() as conn:
            small = content(1) | {"size_bytes": 10, "media_type": "image"}
            large = content(2) | {"size_bytes": 5 << 20, "media_type": "video"}
            photos, films = add_library(conn, "photos"), add_library(conn, "films")
            add_files(conn, photos, [small | {"rel_path": path} for path in HOSTILE])
            add_files(conn, films, [large | {"rel_path": path} for path in (b"x/1", b"y/1")])
            summarise_all(conn)
        yield plane


def run(control: ControlPlane, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["duplicates", *words, "--server", control.address])
    assert result.exit_code == code, result.output
    return result


def listed(control: ControlPlane, *words: str) -> list[str]:
    groups = json.loads(run(control, "list", "--json", *words).stdout)["groups"]
    return [group["group_key"] for group in groups]


def paths_of(library: str) -> list[bytes]:
    names = HOSTILE if library == "photos" else [b"x/1", b"y/1"]
    return [b"/media/" + library.encode() + b"/" + name for name in names]


def damage(control: ControlPlane, *paths: bytes) -> None:
    """Have files found damaged, as a verify job would."""
    with control.database.control.write() as conn:
        mark = text("UPDATE library_files SET error_code = 'bit_rot' WHERE rel_path = :path")
        for path in paths:
            conn.execute(mark, {"path": path})


def timestamp(control: ControlPlane) -> str:
    report = json.loads(run(control, "export", "--format", "fclones").stdout)
    return str(report["header"]["timestamp"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [MANY, LARGE]),
        (["--sort", "copies", "--limit", "1"], [MANY]),
        (["--sort", "reclaimable"], [LARGE, MANY]),
        (["--min-size", "5M"], [LARGE]),
        (["--min-size", "5242881"], []),
        (["--library", "photos"], [MANY]),
        (["--library", "films", "--path", "x"], [LARGE]),
        (["--library", "films", "--path", "z"], []),
        (["--type", "image"], [MANY]),
    ],
    ids=" ".join,
)
def test_the_list_has_the_order_and_the_groups_asked_for(
    control: ControlPlane, words: list[str], expected: list[str]
) -> None:
    assert listed(control, *words) == expected


@pytest.mark.parametrize(
    "words",
    [["--path", "x"], ["--sort", "size"], ["--type", "text"], ["--min-size", "1MB"]],
    ids=" ".join,
)
def test_what_cannot_be_asked_for_is_a_usage_error(control: ControlPlane, words: list[str]) -> None:
    assert words[0] in run(control, "list", *words, code=2).stderr


def test_a_library_that_does_not_exist_is_named(control: ControlPlane) -> None:
    assert "'nobody'" in run(control, "list", "--library", "nobody", code=1).stderr


def test_the_files_of_a_group_are_listed_with_their_library(control: ControlPlane) -> None:
    files = json.loads(run(control, "files", LARGE, "--json").stdout)["files"]
    assert [(file["library"], file["path"]) for file in files] == [("films", "x/1"),
                                                                   ("films", "y/1")]  # fmt: skip


def test_an_export_as_json_has_the_bytes_of_every_name(control: ControlPlane) -> None:
    many, large = json.loads(run(control, "export", "--format", "json").stdout)["groups"]
    assert (many["group_key"], many["file_count"], large["group_key"]) == (MANY, 3, LARGE)
    found = [base64.b64decode(file["absolute_path_base64"]) for file in many["files"]]
    assert found == paths_of("photos")
    assert large["files"][0] == {
        "library": "films",
        "absolute_path": "/media/films/x/1",
        "absolute_path_base64": base64.b64encode(b"/media/films/x/1").decode(),
    }


def test_an_export_of_nothing_is_whole_json(control: ControlPlane) -> None:
    result = run(control, "export", "--format", "json", "--min-size", "1T")
    assert json.loads(result.stdout) == {"groups": []}


def test_an_export_as_csv_has_one_line_for_each_file(control: ControlPlane) -> None:
    text_of_all = run(control, "export", "--format", "csv").stdout
    assert len(text_of_all.splitlines()) == 1 + 3 + 2
    rows = list(csv.DictReader(io.StringIO(text_of_all, newline="")))
    assert [row["group_key"] for row in rows] == [MANY] * 3 + [LARGE] * 2
    found = [base64.b64decode(row["absolute_path_base64"]) for row in rows]
    assert found == paths_of("photos") + paths_of("films")
    assert (rows[3]["library"], rows[3]["size_bytes"]) == ("films", str(5 << 20))


def test_an_export_like_fdupes_has_one_line_for_each_name_whatever_is_in_it(
    control: ControlPlane, tmp_path: Path
) -> None:
    target = tmp_path / "groups.txt"
    result = run(control, "export", "--format", "fdupes", "--output", str(target))
    assert result.stdout == ""
    many, large, end = target.read_bytes().split(b"\n\n")
    assert end == b""
    assert large.split(b"\n") == paths_of("films")
    lines = many.split(b"\n")
    assert lines[0] == b"/media/photos/a\\nb.jpg"
    assert lines[1] == b"/media/photos/\xff\\\\n.jpg"
    assert lines[2] == paths_of("photos")[2]


def test_an_export_for_fclones_is_a_report_of_its_own_kind(control: ControlPlane) -> None:
    report = json.loads(run(control, "export", "--format", "fclones").stdout)
    header, (many, large) = report["header"], report["groups"]
    assert header.keys() == {"version", "timestamp", "command", "base_dir", "stats"}
    assert header["command"] == ["fclones", "group", "/media/films", "/media/photos"]
    assert large == {
        "file_len": 5 << 20,
        "file_hash": digest(2).hex(),
        "files": ["/media/films/x/1", "/media/films/y/1"],
    }
    assert many["files"] == [
        r"/media/photos/a\nb.jpg",
        r"/media/photos/\xFF\\n.jpg",
        '/media/photos/ü,"quoted".jpg',
    ]


def test_an_export_for_fclones_names_the_beginning_of_the_oldest_scan(
    control: ControlPlane,
) -> None:
    """By then every file was as it is known; fclones spares files that are modified later."""
    hour_ms = 3_600_000
    with control.database.control.write() as conn:
        conn.execute(text("UPDATE libraries SET created_at = 1"))
        for library, hours in (("films", 2), ("photos", 1)):
            scan = {"library_id": library, "started_at": hours * hour_ms}
            Rows(conn).add("scan_sessions", status="succeeded", **scan)
    assert timestamp(control) == "1970-01-01T01:00:00Z"
    with control.database.control.write() as conn:
        scan = {"library_id": "films", "started_at": 3 * hour_ms}
        Rows(conn).add("scan_sessions", status="failed", **scan)
    assert timestamp(control) == "1970-01-01T00:00:00.001Z"


def test_a_damaged_file_is_no_copy_in_any_export(control: ControlPlane) -> None:
    damage(control, b"a\nb.jpg", b"x/1")
    for form in Format:
        done = run(control, "export", "--format", form)
        assert "y/1" not in done.stdout, "a group of a single sound copy is none"
        assert "2 damaged copies were left out" in done.stderr
        assert "mediaplane file list SLUG --errors" in done.stderr
    (group,) = json.loads(run(control, "export", "--format", "json").stdout)["groups"]
    found = [base64.b64decode(file["absolute_path_base64"]) for file in group["files"]]
    assert found == paths_of("photos")[1:]
    figures = ("file_count", "total_size_bytes", "reclaimable_bytes")
    assert tuple(group[figure] for figure in figures) == (2, 20, 10)


def test_an_export_without_damaged_files_says_nothing_of_them(control: ControlPlane) -> None:
    assert run(control, "export", "--format", "csv").stderr == ""


def test_a_damaged_file_is_marked_among_the_files_of_its_group(control: ControlPlane) -> None:
    damage(control, b"y/1")
    files = json.loads(run(control, "files", LARGE, "--json").stdout)["files"]
    assert [file["error_code"] for file in files] == ["", "bit_rot"]
    header, sound, damaged = run(control, "files", LARGE).stdout.splitlines()
    assert header.split() == ["ID", "LIBRARY", "SIZE", "STATUS", "PATH"]
    assert "damaged" in damaged
    assert "damaged" not in sound


def test_an_export_has_only_the_groups_asked_for(control: ControlPlane) -> None:
    words = ["--format", "fdupes", "--library", "films", "--path", "y", "--type", "video"]
    expected = "/media/films/x/1\n/media/films/y/1\n\n"
    assert run(control, "export", *words).stdout == expected


def test_an_export_never_replaces_a_file_of_a_library(
    control: ControlPlane, tmp_path: Path
) -> None:
    root = tmp_path / "library"
    root.mkdir()
    (root / "original").write_bytes(b"the only one")
    control.library("library", bytes(root))
    words = ["--format", "csv", "--output", str(root / "original")]
    assert "nothing is ever written" in run(control, "export", *words, code=1).stderr
    assert [path.read_bytes() for path in root.iterdir()] == [b"the only one"]


def test_an_export_that_is_refused_leaves_its_target_alone(
    control: ControlPlane, tmp_path: Path
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "there").write_bytes(b"of yesterday")
    for name in ("there", "new"):
        words = ["--library", "nobody", "--output", str(folder / name)]
        run(control, "export", "--format", "csv", *words, code=1)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"there": b"of yesterday"}


def test_an_export_to_a_dash_goes_to_the_standard_output(
    control: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--format", "fdupes", "--library", "films", "--output", "-"]
    assert run(control, "export", *words).stdout == "/media/films/x/1\n/media/films/y/1\n\n"
    assert not Path("-").exists()


@pytest.mark.parametrize("form", Format)
def test_an_export_writes_each_group_before_it_asks_for_the_next(
    control: ControlPlane, form: Format
) -> None:
    sink, written = io.BytesIO(), []

    def watched() -> Iterator[Any]:
        for group in control.client.duplicate_groups():
            written.append(sink.tell())
            yield group

    export(control.client, watched(), form, sink)
    assert len(written) == 2
    assert written[0] < written[1] < sink.tell()


def test_groups_that_are_right_are_verified(control: ControlPlane) -> None:
    assert run(control, "verify").stdout == "2 groups, all as the files say.\n"


def test_groups_that_are_wrong_fail_the_check_until_they_are_repaired(
    control: ControlPlane,
) -> None:
    with control.database.control.write() as conn:
        conn.execute(text("UPDATE duplicate_groups SET file_count = 7"))
    assert "2 wrong groups." in run(control, "verify", code=1).stdout
    told = json.loads(run(control, "verify", "--json", code=1).stdout)["verification"]
    assert told == {"groups": 2, "wrong_groups": 2, "is_repaired": False}
    assert run(control, "verify", "--repair").stdout == "2 wrong groups written anew.\n"
    assert run(control, "verify").stdout == "2 groups, all as the files say.\n"


@pytest.mark.parametrize(
    ("written", "size_bytes"),
    [("0", 0), ("500", 500), ("500B", 500), ("4k", 4096), ("4K", 4096), ("1M", 1 << 20),
     ("2GiB", 2 << 30), ("2 gib", 2 << 30), ("3T", 3 << 40), ("1P", 1 << 50)],
)  # fmt: skip
def test_a_size_is_read_in_powers_of_1024(written: str, size_bytes: int) -> None:
    assert parse_size(written) == size_bytes


@pytest.mark.parametrize(
    "written", ["", "k", "-1", "1.5G", "1MB", "1e3", "1kk", "٣", "8192P", "9" * 20, "1 000"]
)
def test_what_is_no_size_is_refused_with_what_was_written(written: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        parse_size(written)
    assert repr(written) in caught.value.message
