"""Whether an MP4 or MOV file was cut off is told by its boxes, of which few are looked at."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from data_plane.decoders import boxes, sources
from data_plane.decoders.endings import is_cut_off
from data_plane.decoders.messages import Output, Product
from data_plane.decoders.sources import Source
from mediaplane.protocol.values import HashAlgorithm
from tests.support.videos import make, write_video

POSTER = Output(Product.PICTURE, 320)
FRAGMENTS = {"movflags": "frag_every_frame+empty_moov+skip_trailer"}


def look(path: Path) -> tuple[bool, int]:
    """Return whether a file looks cut off, and how many bytes of it were fetched for that."""
    fd = os.open(path, os.O_RDONLY)
    try:
        source = Source(fd, None, fd)
        return is_cut_off(source, "mov,mp4,m4a,3gp,3g2,mj2"), source.bytes_read
    finally:
        os.close(fd)


def box(name: bytes, content: bytes = b"", *, is_large: bool = False) -> bytes:
    if is_large:
        return b"\0\0\0\1" + name + (16 + len(content)).to_bytes(8, "big") + content
    return (8 + len(content)).to_bytes(4, "big") + name + content


FRAGMENT_INDEX = box(b"moof", box(b"mfhd", bytes(8)))


def write_sparse(path: Path, parts: Sequence[tuple[bytes, int]]) -> int:
    """Write a file of parts, each followed by a hole of some length; return how long it is."""
    at = 0
    with path.open("wb") as file:
        for content, hole_bytes in parts:
            file.seek(at)
            file.write(content)
            at += len(content) + hole_bytes
        file.truncate(at)
    return at


@pytest.mark.parametrize("is_large", [False, True])
def test_a_file_is_cut_off_wherever_no_box_ends(tmp_path: Path, is_large: bool) -> None:
    parts = [
        box(b"ftyp", b"isom"),
        box(b"moov", b"1" * 9),
        box(b"mdat", b"2" * 9, is_large=is_large),
    ]
    content = b"".join(parts)
    path = tmp_path / "video.mp4"

    whole = []
    for length in range(1, len(content) + 1):
        path.write_bytes(content[:length])
        if not look(path)[0]:
            whole.append(length)

    begin, end = len(parts[0]) + len(parts[1]), len(content)
    # A file may end with zeros, and so does what is there of a length.
    zeros = {at + count for at in (0, len(parts[0]), begin) for count in (0, 1, 2, 3)} - {0}
    assert whole == sorted(zeros | {end})


@pytest.mark.parametrize(
    "ending",
    [
        b"\0",
        bytes(7),
        bytes(5000),
        box(b"free", bytes(3000)) * 3,
        box(b"inst", b"of its maker"),
        box(b"free", b"x") + bytes(2),
        b"\0\0\0\0mdat" + b"up to the end",
        b"TAG" + b"a title of a song".ljust(125),
        b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(500),
        b"\0\0\0\5mdat",
        b"\0\0\0\1mdat" + bytes(8),
    ],
)
@pytest.mark.parametrize("movflags", ["write_colr", "faststart", "frag_keyframe+empty_moov"])
def test_what_cameras_write_behind_the_last_box_is_not_missed(
    tmp_path: Path, movflags: str, ending: bytes
) -> None:
    path = write_video(tmp_path / "video.mp4", frames=30, container={"movflags": movflags})
    path.write_bytes(path.read_bytes() + ending)

    assert not look(path)[0]


def test_a_fragment_of_which_only_the_index_is_there_is_cut_off(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mp4", container=FRAGMENTS)
    content = path.read_bytes()

    at = content.rfind(b"mdat") - 4
    os.truncate(path, at)
    assert make(path, POSTER).done.is_degraded

    # Between fragments nothing tells.
    os.truncate(path, content.rfind(b"moof") - 4)
    assert not make(path, POSTER).done.is_degraded


def test_of_a_thousand_fragments_only_the_last_is_looked_at(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mp4", frames=boxes._MAX_BOXES, container=FRAGMENTS)
    assert path.read_bytes().count(b"moof") > boxes._MAX_BOXES // 2
    assert not look(path)[0]

    os.truncate(path, path.stat().st_size - 1)

    assert look(path)[0]
    assert make(path, POSTER).done.is_degraded


def test_of_large_fragments_few_are_fetched(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    hole_bytes = 3 << 20
    fragment = FRAGMENT_INDEX + (8 + hole_bytes).to_bytes(4, "big") + b"mdat"
    size = write_sparse(path, [(box(b"ftyp"), 0), *[(fragment, hole_bytes)] * 1000])

    assert look(path)[0] is False
    os.truncate(path, size - 1)
    is_cut, fetched_bytes = look(path)

    assert is_cut
    assert fetched_bytes < 10 << 20 < size // 100


def test_of_millions_of_boxes_few_are_fetched(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    path.write_bytes(box(b"free") * (2 << 20))

    assert look(path) == (False, 128 << 10)


def test_a_box_behind_hours_of_video_is_found_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "video.mov"
    hole_bytes = 6 << 30
    header = b"\0\0\0\1mdat" + (16 + hole_bytes).to_bytes(8, "big")
    size = write_sparse(
        path, [(box(b"wide"), 0), (header, hole_bytes), (box(b"moov", b"x" * 99), 0)]
    )

    assert look(path)[0] is False
    os.truncate(path, size - 1)
    assert look(path) == (True, (128 << 10) + size - 1 - (size - 1) // (128 << 10) * (128 << 10))


@pytest.mark.parametrize("algorithm", [None, HashAlgorithm.BLAKE3])
@pytest.mark.parametrize("outputs", [(POSTER,), ()], ids=["poster", "frames"])
def test_no_block_of_a_video_of_fragments_is_fetched_twice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    algorithm: HashAlgorithm | None,
    outputs: Sequence[Output],
) -> None:
    # As much smaller than usual as the video is.
    for name in ("_PART_BLOCK_BYTES", "_WHOLE_BLOCK_BYTES"):
        monkeypatch.setattr(sources, name, 1 << 10)
    monkeypatch.setattr(sources, "_KEPT_BYTES", 48 << 10)
    monkeypatch.setattr(boxes, "_MAX_FETCHED_BYTES", 2 << 10)
    monkeypatch.setattr(boxes, "_TAILS_BYTES", (2 << 10, 8 << 10))
    path = write_video(
        tmp_path / "video.mp4", "mjpeg", frames=60, pix_fmt="yuvj420p", container=FRAGMENTS
    )
    size = path.stat().st_size
    assert size > 64 << 10

    whole = make(path, *outputs, hash_algorithm=algorithm).done
    os.truncate(path, size - 1)
    cut = make(path, *outputs, hash_algorithm=algorithm).done

    assert (whole.is_degraded, cut.is_degraded) == (False, True)
    is_all_needed = algorithm or not outputs
    assert size * 0.9 < whole.bytes_read <= size
    assert size * 0.9 < cut.bytes_read < size
    assert not is_all_needed or (whole.bytes_read, cut.bytes_read) == (size, size - 1)
