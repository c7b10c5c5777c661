"""Videos on the command line: their frames, and thumbnails that are awaited and removed."""

import signal
from pathlib import Path

import pytest
from PIL import Image

from tests.acceptance.test_processes import wait_for_line
from tests.support.commands import Commands
from tests.support.studio import film
from tests.support.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """A folder with a video of four seconds."""
    folder = tmp_path / "films"
    folder.mkdir()
    film(folder / "trip.mp4")
    return folder


def only_asset(commands: Commands) -> str:
    (asset,) = commands.json("asset", "list", "films")["assets"]
    return str(asset["name"])


def test_the_frames_of_a_video_are_listed_and_written_as_one_picture(
    commands: Commands, films: Path, tmp_path: Path
) -> None:
    sheet = tmp_path / "sheet.jpg"
    with commands.planes():
        commands.run("library", "add", "films", films)
        commands.run("library", "set", "films", "--frames", "8")
        commands.run("up", films, "--once")
        asset = only_asset(commands)
        frames = commands.json("asset", "frames", asset)["frames"]
        assert [frame["timestamp_ms"] for frame in frames] == sorted(
            {frame["timestamp_ms"] for frame in frames}
        )
        assert len(frames) == 8
        assert {frame["keyframe"] for frame in frames} == {True, False}
        written = commands.json("asset", "frames", asset, "--contact-sheet", sheet)
        assert written["output_bytes"] == sheet.stat().st_size
        with Image.open(sheet) as image:
            assert (image.format, image.size) == ("JPEG", (8 * 160, 120))


def test_how_frames_are_chosen_is_set_and_shown(sqlite_commands: Commands, films: Path) -> None:
    with sqlite_commands.planes():
        sqlite_commands.run("library", "add", "films", films)
        changed = ("library", "set", "films", "--frames", "7", "--frame-measure", "ssim")
        assert sqlite_commands.json(*changed)["library"]["sampling_limit"] == 7
        assert "7 by ssim" in sqlite_commands.run("library", "show", "films").stdout
        sqlite_commands.run("library", "set", "films", "--frame-measure", "psnr", code=2)
        sqlite_commands.run("library", "set", "films", "--frames", "0", code=2)


def test_the_thumbnails_of_a_group_are_removed(
    commands: Commands, films: Path, tmp_path: Path
) -> None:
    listing = ("thumbnail", "list", "--group", "gallery")
    with commands.planes():
        commands.run("up", films, "--once", "--no-media")
        commands.run("thumbnail", "get", films / "trip.mp4", "--output", tmp_path / "trip.webp",
                     "--group", "gallery")  # fmt: skip
        assert [one["state"] for one in commands.json(*listing)["thumbnails"]] == ["ready"]
        cleanup = commands.json("thumbnail", "clean", "gallery")["cleanup"]
        assert cleanup["group_key"] == "gallery"
        eventually(lambda: commands.json(*listing) == {"thumbnails": []})
    assert (films / "trip.mp4").exists()


def test_a_thumbnail_that_nobody_makes_says_what_to_start(
    sqlite_commands: Commands, films: Path, tmp_path: Path
) -> None:
    target = tmp_path / "trip.webp"
    process = sqlite_commands.start("up", films, "--no-media")
    try:
        wait_for_line(process, "Ctrl-C stops")
        words = ("thumbnail", "get", films / "trip.mp4", "--output", target, "--timeout", "0.5")
        said = sqlite_commands.run(*words, code=1).stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert "was not made within 0.5 s" in said
    assert "No worker that decodes media is running: start one without --no-media" in said
    assert not target.exists()


def test_what_is_lost_of_a_processed_video_is_made_anew(
    sqlite_commands: Commands, films: Path, tmp_path: Path
) -> None:
    target = tmp_path / "trip.jpg"
    with sqlite_commands.planes():
        sqlite_commands.run("up", films, "--once")
        asset = only_asset(sqlite_commands)
        frames = sqlite_commands.json("asset", "frames", asset)
        lost = [file for file in (sqlite_commands.state / "cache").rglob("*") if file.is_file()]
        assert lost
        for file in lost:
            file.unlink()
        sqlite_commands.run("asset", "get", asset, "--output", target, code=1)
        assert sqlite_commands.json("asset", "retry", asset) == {"retried_assets": 1}
        sqlite_commands.run("up", films, "--once")
        sqlite_commands.run("asset", "get", asset, "--output", target)
        assert sqlite_commands.json("asset", "frames", asset) == frames
        assert all(file.exists() for file in lost)


def test_a_thumbnail_that_was_damaged_is_made_anew_in_the_way_that_is_told(
    sqlite_commands: Commands, films: Path, tmp_path: Path
) -> None:
    words = ("thumbnail", "get", films / "trip.mp4", "--output", tmp_path / "trip.jpg")
    with sqlite_commands.planes():
        sqlite_commands.run("up", films, "--once", "--no-media")
        made = sqlite_commands.json(*words)
        (file,) = (sqlite_commands.state / "cache" / "thumbnails").rglob("*.jpeg")
        file.write_bytes(b"")
        group = made["thumbnail"]["group_key"]
        said = sqlite_commands.run(*words, code=1).stderr
        assert f"`mediaplane thumbnail clean {group}`" in said
        sqlite_commands.run("thumbnail", "clean", group)
        listing = ("thumbnail", "list", films / "trip.mp4")
        eventually(lambda: sqlite_commands.json(*listing) == {"thumbnails": []})
        again = sqlite_commands.json(*words)
    assert again["output_bytes"] == made["output_bytes"] > 0
