"""Pictures on the command line: thumbnails, what was made of each, and what could not be."""

import os
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.support import tree
from tests.support.commands import Commands
from tests.support.waiting import PATIENCE_SECONDS

SIDE = 640


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with two pictures, one that is none, and a text."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, colour in (("red.png", "red"), ("blue.png", "blue")):
        Image.new("RGB", (SIDE, SIDE // 2), colour).save(folder / name)
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff no picture")
    (folder / "note.txt").write_text("neither")
    return folder


def test_up_waits_for_pictures_and_says_what_became_of_them(
    commands: Commands, photos: Path
) -> None:
    before = tree.snapshot(photos)
    with commands.planes():
        found = commands.json("up", photos, "--once")["media"]
        assert (found["failed_assets"], found["waiting_assets"]) == (1, 0)
        assets = commands.json("asset", "list", "photos")["assets"]
        assert {asset["path"]: asset["state"] for asset in assets} == {
            "blue.png": "proxied", "broken.jpg": "failed", "red.png": "proxied",
        }  # fmt: skip
        failed = commands.json("asset", "list", "photos", "--only", "failed")["assets"]
        assert [asset["path"] for asset in failed] == ["broken.jpg"]
        assert "--only failed" in commands.run("up", photos, "--once").stdout
        assert commands.json("asset", "retry", "--library", "photos") == {"retried_assets": 1}
    assert tree.snapshot(photos) == before


def test_up_without_media_leaves_pictures_for_later(
    sqlite_commands: Commands, photos: Path
) -> None:
    found = sqlite_commands.json("up", photos, "--once", "--no-media")["media"]
    assert found == {"failed_assets": 0, "waiting_assets": 3}
    found = sqlite_commands.json("up", photos, "--once")["media"]
    assert (found["failed_assets"], found["waiting_assets"]) == (1, 0)


def test_up_does_not_wait_for_workers_that_process_no_media(
    sqlite_commands: Commands, photos: Path
) -> None:
    slots = {"MEDIAPLANE_IMAGE_SLOTS": "0", "MEDIAPLANE_VIDEO_SLOTS": "0"}
    sqlite_commands.environment.update(slots)
    done = sqlite_commands.run("up", photos, "--once")
    assert "3 images and videos wait, but no worker processes them" in done.stderr
    assert "3 waiting" in done.stdout


def test_a_thumbnail_is_made_of_a_path_and_written_whole(
    commands: Commands, photos: Path, tmp_path: Path
) -> None:
    target = tmp_path / "red.webp"
    with commands.planes():
        commands.run("up", photos, "--once", "--no-media")
        found = commands.json(
            "thumbnail", "get", photos / "red.png", "--output", target, "--size", "100"
        )
        assert found["output_bytes"] == target.stat().st_size
        with Image.open(target) as image:
            assert (image.format, image.size) == ("WEBP", (100, 50))
        (listed,) = commands.json("thumbnail", "list", photos / "red.png")["thumbnails"]
        assert (listed["name"], listed["state"]) == (found["thumbnail"]["name"], "ready")
        again = commands.json("thumbnail", "get", listed["file"], "--output", target,
                              "--size", "100", "--format", "webp")  # fmt: skip
        assert again["thumbnail"]["name"] == listed["name"]
    assert sorted(path.name for path in tmp_path.glob("red*")) == ["red.webp"]


def test_a_picture_that_was_cut_off_is_shown_with_a_word_about_it(
    commands: Commands, photos: Path, tmp_path: Path
) -> None:
    whole = (photos / "red.png").read_bytes()
    (photos / "cut.png").write_bytes(whole[: len(whole) * 2 // 3])
    words = ("thumbnail", "get", photos / "cut.png", "--output", tmp_path / "cut.jpg")
    with commands.planes():
        commands.run("up", photos, "--once", "--no-media")
        assert "could not be decoded" in commands.run(*words).stderr
        assert commands.json(*words)["thumbnail"]["degraded"] is True
        listed = commands.run("thumbnail", "list", photos / "cut.png").stdout
        assert "could not be decoded" in listed


def test_a_thumbnail_goes_to_the_standard_output_alone(
    sqlite_commands: Commands, photos: Path
) -> None:
    with sqlite_commands.planes():
        sqlite_commands.run("up", photos, "--once", "--no-media")
        words = ("thumbnail", "get", photos / "blue.png", "--output")
        process = sqlite_commands.start(*words, "-")
        assert process.stdout
        assert process.stderr
        image = Image.open(BytesIO(process.stdout.buffer.read()))  # type: ignore[attr-defined]
        assert (image.format, image.size) == ("JPEG", (320, 160))
        process.stderr.close()
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 0
        sqlite_commands.run(*words, "-", "--json", code=2)


def test_what_cannot_be_written_or_made_leaves_no_trace(
    sqlite_commands: Commands, photos: Path, tmp_path: Path
) -> None:
    before, target = tree.snapshot(photos), tmp_path / "x.jpg"
    os.symlink(photos, tmp_path / "elsewhere")
    with sqlite_commands.planes():
        sqlite_commands.run("up", photos, "--once", "--no-media")
        for file, output, said in (
            ("red.png", photos / "x.jpg", "nothing is ever written"),
            ("red.png", tmp_path / "elsewhere" / "x.jpg", "nothing is ever written"),
            ("note.txt", target, "neither a picture nor a video"),
            ("broken.jpg", target, "could not be made"),
            ("gone.png", target, "is not known"),
            ("../state/x.png", target, "lies in no library"),
        ):
            words = ("thumbnail", "get", photos / file, "--output", output)
            assert said in sqlite_commands.run(*words, code=1).stderr
    assert tree.snapshot(photos) == before
    assert not list(tmp_path.glob("x*"))


def test_what_was_made_of_a_picture_is_written_and_what_was_not_is_explained(
    sqlite_commands: Commands, photos: Path, tmp_path: Path
) -> None:
    with sqlite_commands.planes():
        sqlite_commands.run("up", photos, "--once")
        assets = sqlite_commands.json("asset", "list", "photos")["assets"]
        numbers = {asset["path"]: asset["name"].rpartition("/")[2] for asset in assets}
        target = tmp_path / "proxy"
        sqlite_commands.run("asset", "get", numbers["red.png"], "--output", target)
        with Image.open(target) as image:
            assert image.size == (SIDE, SIDE // 2)
        shown = sqlite_commands.json("asset", "show", numbers["red.png"])["asset"]
        assert (shown["width"], shown["height"]) == (SIDE, SIDE // 2)
        frames = sqlite_commands.json("asset", "frames", numbers["red.png"])
        assert frames == {"frames": []}
        sheet = ("asset", "frames", numbers["red.png"], "--contact-sheet", tmp_path / "sheet.jpg")
        assert "video" in sqlite_commands.run(*sheet, code=1).stderr
        assert "no asset 999" in sqlite_commands.run("asset", "show", "999", code=1).stderr
        assert not list(tmp_path.glob("sheet*"))


def test_a_picture_that_became_none_is_not_shown_as_it_was_nor_told_of_once_it_is_gone(
    sqlite_commands: Commands, photos: Path, tmp_path: Path
) -> None:
    target = tmp_path / "red.jpg"
    (photos / "broken.jpg").unlink()
    with sqlite_commands.planes():
        sqlite_commands.run("up", photos, "--once")
        assets = sqlite_commands.json("asset", "list", "photos")["assets"]
        red = {asset["path"]: asset["name"] for asset in assets}["red.png"]
        (photos / "red.png").write_bytes(b"no picture")
        assert sqlite_commands.json("up", photos, "--once")["media"]["failed_assets"] == 1
        said = sqlite_commands.run("asset", "get", red, "--output", target, code=1).stderr
        assert "The asset is failed." in said
        assert "`mediaplane asset retry" in said
        assert "Measures" not in sqlite_commands.run("asset", "show", red).stdout
        (photos / "red.png").unlink()
        assert sqlite_commands.json("up", photos, "--once")["media"]["failed_assets"] == 0
        failed = ("asset", "list", "photos", "--only", "failed")
        assert sqlite_commands.json(*failed) == {"assets": []}
        retried = sqlite_commands.json("asset", "retry", "--library", "photos")
        assert retried == {"retried_assets": 0}
    assert not target.exists()
