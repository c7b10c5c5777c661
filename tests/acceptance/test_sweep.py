"""What was made of files that are not known any more goes; the files themselves stay."""

import json
from pathlib import Path

import pytest

from data_plane.cache import AssetFile, asset_path, thumbnail_path
from mediaplane.protocol.values import ThumbnailFormat
from tests.support import tree
from tests.support.commands import Commands
from tests.support.waiting import eventually


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a.jpg", "b.jpg"):
        (folder / name).write_bytes(name.encode())
    return folder


def put(state: Path, path: str) -> Path:
    file = state / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"picture")
    return file


def assets(commands: Commands) -> list[int]:
    found = commands.json("asset", "list", "photos")["assets"]
    return [int(asset["name"].rpartition("/")[2]) for asset in found]


def test_emptying_the_trash_has_the_derivatives_of_a_library_swept(
    commands: Commands, library: Path
) -> None:
    before = tree.snapshot(library)
    with commands.planes():
        commands.run("up", library, "--once")
        owners = assets(commands)
        assert len(owners) == 2
        proxies = [
            put(commands.state, asset_path(owner, AssetFile.PROXY, "1-2")) for owner in owners
        ]
        swept = commands.json("cache", "sweep")["job"]
        assert (swept["state"], swept["processed_items"]) == ("completed", 0)
        assert all(proxy.exists() for proxy in proxies)
        commands.run("library", "remove", "photos")
        commands.run("trash", "empty", "--yes")
        eventually(lambda: not any(proxy.exists() for proxy in proxies))
    assert tree.snapshot(library) == before


def test_a_sweep_says_how_much_it_removed(sqlite_commands: Commands) -> None:
    for form in ThumbnailFormat:
        put(sqlite_commands.state, thumbnail_path(7, form))
    assert sqlite_commands.run("cache", "sweep").stdout == "2 files removed from the cache\n"
    assert sqlite_commands.run("cache", "sweep").stdout == "0 files removed from the cache\n"


def test_a_sweep_that_is_not_waited_for_is_done_by_the_next_data_plane(
    sqlite_commands: Commands,
) -> None:
    orphan = put(sqlite_commands.state, asset_path(7, AssetFile.SPRITE, "1-2"))
    admitted = json.loads(sqlite_commands.run("cache", "sweep", "--no-wait", "--json").stdout)
    assert admitted["job"]["state"] == "pending"
    assert orphan.exists()
    refused = sqlite_commands.run("cache", "sweep", "--no-wait", code=1)
    assert "only one sweep runs at a time" in refused.stderr
    with sqlite_commands.planes():
        eventually(lambda: not orphan.exists())


def test_a_cache_that_is_a_link_to_media_is_refused_and_the_media_untouched(
    sqlite_commands: Commands, tmp_path: Path
) -> None:
    media = tmp_path / "media"
    put(media, thumbnail_path(7, ThumbnailFormat.JPEG))
    before = tree.snapshot(media)
    (sqlite_commands.state / "cache").symlink_to(media / "cache")
    refused = sqlite_commands.run("cache", "sweep", code=1)
    assert "a symbolic link is on the way" in refused.stderr
    assert tree.snapshot(media) == before
