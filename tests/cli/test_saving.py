"""What is written to a file, or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mediaplane.cli.app import app
from mediaplane.cli.saving import check_is_outside, opened, report, save
from mediaplane.client import CommandFailed
from mediaplane.v1.content_service_pb2 import ContentChunk
from tests.support.control import ControlPlane, serving_control
from tests.support.databases import Copies
from tests.support.databases import opened as opened_database


@pytest.fixture
def control(sqlite_template: Copies, tmp_path: Path) -> Iterator[ControlPlane]:
    """With a library, and a folder beside it."""
    with (
        sqlite_template() as url,
        opened_database(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        (tmp_path / "library" / "inner").mkdir(parents=True)
        (tmp_path / "outside").mkdir()
        plane.library("library", bytes(tmp_path / "library"))
        yield plane


def refused(control: ControlPlane, target: Path | str) -> str:
    with pytest.raises(CommandFailed) as caught:
        check_is_outside(control.client, str(target))
    return str(caught.value)


def test_a_file_that_is_there_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"of yesterday")

    def fail() -> None:
        with opened(str(target)) as sink:
            sink.write(b"half of it")
            raise CommandFailed("the rest did not come")

    with pytest.raises(CommandFailed):
        fail()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"of yesterday"]
    with opened(str(target)) as sink:
        sink.write(b"all of it")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"all of it"]


def test_the_name_of_an_open_file_stays_what_it_is(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("wb") as file,
        opened(f"/dev/fd/{file.fileno()}") as sink,
    ):
        sink.write(b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


def test_a_way_back_from_behind_a_link_leads_into_no_library(
    control: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "outside" / "link").symlink_to(tmp_path / "library" / "inner")
    assert "lies in the library library" in refused(control, f"{tmp_path}/outside/link/../x.jpg")
    (tmp_path / "library" / "link").symlink_to(tmp_path / "outside")
    check_is_outside(control.client, f"{tmp_path}/library/link/x.jpg")


def test_a_name_alone_lies_in_the_current_folder(
    control: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "outside")
    check_is_outside(control.client, "x.jpg")
    monkeypatch.chdir(tmp_path / "library")
    assert "lies in the library library" in refused(control, "x.jpg")


def test_a_library_in_the_trash_is_written_to_as_little_as_any_other(
    control: ControlPlane, tmp_path: Path
) -> None:
    control.client.remove_library("library")
    assert "lies in the library library" in refused(control, tmp_path / "library" / "x.jpg")


@pytest.mark.parametrize(
    "words",
    [
        ["thumbnail", "get", "cat.jpg", "--output", ""],
        ["asset", "get", "12", "--output", ""],
        ["asset", "frames", "12", "--contact-sheet", ""],
        ["duplicates", "export", "--format", "csv", "--output", ""],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_target_without_a_name_is_refused(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "the name of a file is missing" in done.stderr


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("", "is a directory"),
        ("nowhere/x.jpg", "nowhere does not exist"),
        ("file/x.jpg", "file does not exist"),
        ("file/", "file does not exist"),
        ("n" * 256, "cannot be written: File name too long"),
    ],
    ids=["directory", "no folder", "file as folder", "slash", "long"],
)
def test_what_cannot_become_a_file_is_refused_at_once(
    tmp_path: Path, target: str, said: str
) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["asset", "get", "12", "--output", f"{tmp_path}/{target}"])
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Errno" not in done.stderr


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    for name in ("n" * 255, "ü" * 127):
        with opened(str(tmp_path / name)) as sink:
            sink.write(b"content")
    assert {path.name for path in tmp_path.iterdir()} == {"n" * 255, "ü" * 127}


@pytest.mark.parametrize("target", ["nowhere/x", "/dev/full"], ids=["file", "device"])
def test_what_the_system_refuses_is_told_with_the_name_that_was_given(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = f"^{target} cannot be written: No "
    with pytest.raises(CommandFailed, match=told) as caught, opened(target) as sink:
        sink.write(b"content")
    assert "part" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "is_told"),
    [("x.png", True), ("x.WEBP", True), ("x.jpg", False), ("x.JPEG", False), ("x.2019", False),
     ("x", False)],
)  # fmt: skip
def test_a_name_that_says_another_format_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, is_told: bool
) -> None:
    chunk = ContentChunk(data=b"picture", size_bytes=7, content_type="image/jpeg")
    assert save(iter([chunk]), str(tmp_path / name)) == 7
    told = f"{tmp_path / name} is of the type image/jpeg, whatever its name says.\n"
    assert capsys.readouterr().err == (told if is_told else "")


def test_what_was_written_is_told_in_visible_characters(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    report("bad\udcffo.jpg", 3, {}, as_json=False)
    assert capfdbinary.readouterr().out == b"Wrote bad\\xffo.jpg, 3 B\n"
    report("bad\udcffo.jpg", 3, {}, as_json=True)
    assert json.loads(capfdbinary.readouterr().out)["output"] == "bad\\xffo.jpg"
