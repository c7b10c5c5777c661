"""What was made of a file is served while it shows the file as it is, and is as it was made."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_plane.cache import AssetFile, asset_path, thumbnail_path
from data_plane.renditions import Found, Renditions
from mediaplane.errors import FailedPrecondition
from mediaplane.protocol.values import ThumbnailFormat
from mediaplane.v1.content_service_pb2 import ReadRenditionRequest
from tests.support.databases import Databases
from tests.support.rows import Rows
from tests.support.scanning import put

JPEG = bytes(range(256)) * 2000
Served = Callable[[], bytes]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "frames"


@pytest.fixture
def served(database: Databases, archive: Path) -> Served:
    """What is served of the frame at 40 ms."""

    def read() -> bytes:
        found = Found(archive.name, "1-2", "image/jpeg", "Make it anew.", "40.jpg")
        renditions = Renditions(database.data, bytes(archive.parent))
        chunks = list(renditions.stream(found, lambda: True))
        assert chunks[0].size_bytes == len(JPEG)
        return b"".join(chunk.data for chunk in chunks)

    return read


def pack(path: Path, content: bytes = JPEG, entries: int = 1, **options: int) -> None:
    with zipfile.ZipFile(path, "w", **options) as archive:  # type: ignore[call-overload]
        archive.writestr("40.jpg", content)
        for number in range(1, entries):
            archive.writestr(f"{40 + number}.jpg", b"")


def replace(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def test_a_frame_is_what_is_in_its_archive(archive: Path, served: Served) -> None:
    pack(archive, entries=1000)
    assert served() == JPEG


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not an archive" * 10),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: replace(path, b"40.jpg", b"41.jpg"),
        lambda path: replace(path, JPEG, JPEG[::-1]),
        lambda path: pack(path, compression=zipfile.ZIP_DEFLATED),
        lambda path: pack(path, bytes((16 << 20) + 1)),
        lambda path: pack(path, entries=25_000),
        lambda path: pack(path, entries=70_000),
    ],
    ids=[
        "empty", "garbage", "cut", "longer", "renamed", "changed", "packed", "huge", "many",
        "too_many_for_one_end",
    ],
)  # fmt: skip
def test_an_archive_that_no_sound_decoder_made_is_refused(
    archive: Path, served: Served, damage: Callable[[Path], None]
) -> None:
    pack(archive)
    damage(archive)
    with pytest.raises(FailedPrecondition, match=r"broken; Make it anew\."):
        served()


PROXY = ReadRenditionRequest.RENDITION_PROXY
VERSION = "7-9"


@pytest.fixture
def proxy(database: Databases, tmp_path: Path) -> Callable[..., bytes]:
    """What is served as the proxy of an asset, which differs so from one that is processed."""

    def read(file: dict[str, Any] | None = None, content: bytes = JPEG, **columns: Any) -> bytes:
        with database.control.write() as conn:
            rows = Rows(conn)
            name = {"library_id": rows.add("libraries"), "rel_path": b"a.jpg"}
            rows.add("library_files", **name, **{"size_bytes": 7, "mtime_ns": 9} | (file or {}))
            usual = {"size": 7, "mtime": 9 / 1e9, "status": "proxied", "version": VERSION}
            asset_id = rows.add("assets", **name, **usual | columns)
        put(tmp_path, asset_path(asset_id, AssetFile.PROXY, VERSION).encode(), content)
        renditions = Renditions(database.data, bytes(tmp_path))
        asset = f"libraries/{name['library_id']}/assets/{asset_id}"
        found = renditions.of_asset(None, asset, PROXY)
        return b"".join(chunk.data for chunk in renditions.stream(found, lambda: True))

    return read


@pytest.mark.parametrize("status", ["proxied", "analyzing", "completed"])
def test_what_was_made_of_a_file_is_served_once_it_is_processed(
    proxy: Callable[..., bytes], status: str
) -> None:
    assert proxy(status=status) == JPEG


@pytest.mark.parametrize("status", ["failed", "poisoned"])
def test_the_picture_of_an_earlier_state_is_not_passed_off_when_a_file_cannot_be_processed(
    proxy: Callable[..., bytes], status: str
) -> None:
    with pytest.raises(FailedPrecondition, match="scan its library") as refused:
        proxy(status=status, error_message="It is no picture.", version="6-8")
    assert "It is no picture." in str(refused.value)
    assert "asset retry" in str(refused.value)


@pytest.mark.parametrize("status", ["pending", "extracting"])
def test_what_is_being_made_anew_is_not_served_as_it_was(
    proxy: Callable[..., bytes], status: str
) -> None:
    with pytest.raises(FailedPrecondition, match=f"{status}.* once it is processed"):
        proxy(status=status)


@pytest.mark.parametrize("file", [{"size_bytes": 8}, {"mtime_ns": 2_000_000_000}])
def test_what_does_not_show_the_file_as_it_was_scanned_is_refused(
    proxy: Callable[..., bytes], file: dict[str, Any]
) -> None:
    with pytest.raises(FailedPrecondition, match=r"another state.*asset retry"):
        proxy(file)


def test_what_was_made_of_a_file_goes_with_its_content_to_a_copy_of_another_time(
    proxy: Callable[..., bytes],
) -> None:
    later = 2_000_000_000
    assert proxy({"mtime_ns": later}, mtime=later / 1e9) == JPEG


def test_an_empty_file_of_an_asset_is_refused_with_the_way_out(proxy: Callable[..., bytes]) -> None:
    with pytest.raises(FailedPrecondition, match=r"empty.*asset retry [0-9]+`"):
        proxy(content=b"")


@pytest.fixture
def thumbnail(database: Databases, tmp_path: Path) -> Callable[[bytes | None], bytes]:
    """What is served of a thumbnail that is ready, if this is in the cache in its place."""

    def read(content: bytes | None) -> bytes:
        made = {"status": "ready", "width": 2, "height": 1, "bytes_size": len(JPEG)}
        with database.control.write() as conn:
            row_id = Rows(conn).add("thumbnails", group_key="my gallery", **made)
        if content is not None:
            put(tmp_path, thumbnail_path(row_id, ThumbnailFormat.JPEG).encode(), content)
        renditions = Renditions(database.data, bytes(tmp_path))
        found = renditions.thumbnail(None, f"thumbnails/{row_id}")
        return b"".join(chunk.data for chunk in renditions.stream(found, lambda: True))

    return read


def test_a_thumbnail_is_served_as_it_was_made(thumbnail: Callable[..., bytes]) -> None:
    assert thumbnail(JPEG) == JPEG


@pytest.mark.parametrize("content", [b"", JPEG[:-1], JPEG + b"x", None])
def test_a_thumbnail_that_is_damaged_or_gone_is_refused_with_the_way_out(
    thumbnail: Callable[..., bytes], content: bytes | None
) -> None:
    with pytest.raises(FailedPrecondition, match="`mediaplane thumbnail clean 'my gallery'`"):
        thumbnail(content)
