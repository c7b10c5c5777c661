"""An archive of frames is served as far as it is one that a sound decoder makes."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from data_plane.renditions import Found, Renditions
from mediaplane.errors import FailedPrecondition
from tests.support.databases import Databases

JPEG = bytes(range(256)) * 2000
Served = Callable[[], bytes]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "frames"


@pytest.fixture
def served(database: Databases, archive: Path) -> Served:
    """What is served of the frame at 40 ms."""

    def read() -> bytes:
        found = Found(archive.name, "1-2", "image/jpeg", "40.jpg")
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
    with pytest.raises(FailedPrecondition, match="broken"):
        served()
