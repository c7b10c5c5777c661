"""Whether a video was cut off is told by its container, wherever that tells."""

import os
import re
import time
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryFile

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_plane.decoders.endings import is_cut_off
from data_plane.decoders.messages import Output, Product
from data_plane.decoders.sources import Source
from tests.support.videos import RATE, make, scene, write_video

POSTER = Output(Product.PICTURE, 320)
LIVE = {"live": "1", "cluster_time_limit": "1000"}
VIDEOS: dict[str, tuple[str, dict[str, str]]] = {
    "video.mkv": ("mpeg4", {}),
    "live.mkv": ("mpeg4", LIVE),
    "live.webm": ("libvpx", LIVE),
    "video.mpg": ("mpeg1video", {}),
    "video.vob": ("mpeg2video", {}),
    "video.ts": ("mpeg2video", {}),
    "video.m2ts": ("libx264", {}),
    "video.avi": ("mpeg4", {}),
    "video.ogv": ("libvpx", {}),
    "video.wmv": ("wmv2", {}),
    "video.flv": ("flv", {}),
    "fast.mp4": ("libx264", {"movflags": "faststart"}),
    "fast.mov": ("mpeg4", {"movflags": "faststart"}),
    "fragments.mp4": ("libx264", {"movflags": "frag_keyframe+empty_moov"}),
    "live.mp4": ("libx264", {"movflags": "frag_keyframe+empty_moov+skip_trailer"}),
    "pictures.mp4": ("libx264", {"movflags": "frag_every_frame+empty_moov+skip_trailer"}),
}
SEGMENT, TINY_CLUSTER = bytes.fromhex("18538067"), bytes.fromhex("1f43b675ffe78100")
# With a length of two bytes, and the time that follows it.
CLUSTER = re.compile(rb"(\x1f\x43\xb6\x75)[\x40-\x7f].(?=\xe7)", re.DOTALL)


def write(folder: Path, name: str) -> Path:
    codec, container = VIDEOS[name]
    return write_video(folder / name, codec, container=container)


def looks_cut_off(path: Path, container: str) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        return is_cut_off(Source(fd, None, fd), container)
    finally:
        os.close(fd)


@pytest.mark.parametrize("name", VIDEOS)
def test_a_video_is_degraded_once_its_last_byte_is_missing(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    before = [make(path).done.is_degraded, make(path, POSTER).done.is_degraded]

    os.truncate(path, path.stat().st_size - 1)

    assert before == [False, False]
    assert make(path).done.is_degraded
    assert make(path, POSTER).done.is_degraded


@pytest.mark.parametrize("name", sorted({*VIDEOS} - {"video.m2ts"}))
def test_a_video_is_degraded_if_a_third_of_it_is_missing(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)

    os.truncate(path, path.stat().st_size * 2 // 3 | 1)

    assert make(path, POSTER).done.is_degraded


@pytest.mark.parametrize(("name", "length"), [("video.ts", 188), ("video.m2ts", 192)])
@pytest.mark.parametrize("missing", [0, 1, 5, 100])
def test_a_transport_stream_looks_whole_only_where_a_packet_ends(
    tmp_path: Path, name: str, length: int, missing: int
) -> None:
    path = write(tmp_path, name)
    # Of a recording that begins within a packet, or that lost some bytes on its way.
    path.write_bytes(path.read_bytes()[missing:])
    size = path.stat().st_size

    whole = []
    for left in range(size, size - 3 * length, -1):
        os.truncate(path, left)
        if not looks_cut_off(path, "mpegts"):
            whole.append(size - left)

    assert whole == [0, length, 2 * length]


@pytest.mark.parametrize("name", ["video.mpg", "video.vob"])
@pytest.mark.parametrize("ending", [b"\0\0\x01\xb9", bytes(5000), b"\xff" * 100])
def test_what_follows_the_last_packet_of_a_program_stream_is_not_missed(
    tmp_path: Path, name: str, ending: bytes
) -> None:
    path = write(tmp_path, name)
    path.write_bytes(path.read_bytes() + ending)

    assert not looks_cut_off(path, "mpeg")


@pytest.mark.parametrize("left", range(4, 30))
def test_a_program_stream_is_cut_off_within_the_header_of_a_packet(
    tmp_path: Path, left: int
) -> None:
    path = write(tmp_path, "video.vob")
    at = path.read_bytes().rfind(b"\0\0\x01\xba")

    os.truncate(path, at + left)

    # Here one header ends, and the next begins.
    assert looks_cut_off(path, "mpeg") == (left != 14)


def test_a_live_recording_of_unknown_lengths_is_cut_off_within_a_frame(tmp_path: Path) -> None:
    path = write(tmp_path, "live.webm")
    content, clusters = CLUSTER.subn(b"\\1\x7f\xff", path.read_bytes())
    path.write_bytes(content)
    assert clusters > 1
    assert not looks_cut_off(path, "matroska,webm")
    assert not make(path).done.is_degraded

    os.truncate(path, len(content) - 10)

    assert looks_cut_off(path, "matroska,webm")


# One by a recorder that was switched off, the other by a program that wrote into a pipe.
@pytest.mark.parametrize("length", [bytes(4), b"\xff" * 4])
def test_an_avi_file_that_was_never_closed_is_not_measured(tmp_path: Path, length: bytes) -> None:
    path = write(tmp_path, "video.avi")
    content = path.read_bytes()
    path.write_bytes(content[:4] + length + content[8:])

    assert not looks_cut_off(path, "avi")


def test_a_large_avi_file_is_cut_off_within_any_of_its_parts(tmp_path: Path) -> None:
    path = write(tmp_path, "video.avi")
    content = path.read_bytes()
    part = b"RIFF" + (1000).to_bytes(4, "little") + b"AVIX" + bytes(996)
    path.write_bytes(content + part + part)
    assert not looks_cut_off(path, "avi")

    os.truncate(path, len(content) + 2 * len(part) - 1)

    assert looks_cut_off(path, "avi")


@pytest.mark.parametrize("size", [b"\0" + b"\x55" * 100, b"\0" * 100])
def test_a_segment_of_matroska_whose_length_is_none_is_not_measured(
    tmp_path: Path, size: bytes
) -> None:
    path = tmp_path / "video.mkv"
    path.write_bytes(b"\x1a\x45\xdf\xa3\x80" + SEGMENT + size)

    assert not looks_cut_off(path, "matroska,webm")


@pytest.mark.parametrize("filler", [TINY_CLUSTER, b"\xec\x80"], ids=["clusters", "elements"])
def test_a_matroska_file_of_millions_of_parts_takes_hardly_any_time(
    tmp_path: Path, filler: bytes
) -> None:
    path = tmp_path / "video.mkv"
    head = b"\x1a\x45\xdf\xa3\x80" + SEGMENT + b"\xff" + TINY_CLUSTER
    path.write_bytes(head + filler * ((12 << 20) // len(filler)))

    began_at = time.process_time()
    assert not looks_cut_off(path, "matroska,webm")

    assert time.process_time() - began_at < 5


def tag(content: bytes, told: int) -> bytes:
    """Return what FLV is made of, and the length that is told of it behind it."""
    return b"\x12" + len(content).to_bytes(3, "big") + bytes(7) + content + told.to_bytes(4, "big")


@pytest.mark.parametrize("left_out", [0, 1, 11])
def test_a_flash_video_is_cut_off_wherever_no_tag_ends(tmp_path: Path, left_out: int) -> None:
    head = b"FLV\1\5\0\0\0\x09" + bytes(4)
    tags = [tag(b"x" * size, size + 11 - left_out) for size in (300, 20, 7, 70_000, 90)]
    content = head + b"".join(tags)
    path = tmp_path / "video.flv"

    whole = []
    for left in range(len(content) - 300, len(content) + 1):
        path.write_bytes(content[:left])
        if not looks_cut_off(path, "flv"):
            whole.append(left)

    assert whole == [len(content) - len(tags[-1]), len(content)]


def test_a_flash_video_that_tells_other_lengths_is_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "video.flv"
    sizes = (300, 20, 7, 90)
    # Of all tags so far, as some recorders do.
    tags = [tag(b"x" * size, sum(sizes[: at + 1])) for at, size in enumerate(sizes)]
    path.write_bytes(b"FLV\1\5\0\0\0\x09" + bytes(4) + b"".join(tags))

    assert not looks_cut_off(path, "flv")


MAGIC = {
    "ogg": b"OggS\0",
    "asf": bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"),
    "avi": b"RIFF",
    "flv": b"FLV\1\5\0\0\0\x09\0\0\0\0",
    "mpegts": b"\x47",
    "mpeg": b"\0\0\x01\xba",
    "matroska,webm": b"\x1a\x45\xdf\xa3\x80",
    "mov,mp4,m4a,3gp,3g2,mj2": b"\0\0\0\x0cftypisom",
}
FILE_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
# What the looks stumble over, if anything: beginnings of parts, lengths, and what is no length.
PIECES = [
    *MAGIC.values(), SEGMENT + b"\xff", SEGMENT, TINY_CLUSTER, b"\x1f\x43\xb6\x75\x84", b"\xec",
    b"\0\0\x01\xb9", b"\0\0\x01\xe0\0\x02", b"\0\0\x01", FILE_PROPERTIES,
    b"\0\0\0\x18moof\0\0\0\x10mfhd", b"moof\0\0\0\x10mfhd", b"\0\0\0\x01mdat", b"\0\0\0\x08mdat",
    b"\0", b"\xff", bytes(8), b"\xff" * 8, b"\x47" + bytes(187),
]  # fmt: skip


@settings(deadline=None)  # what counts is the promise below, and not how busy the machine is
@given(pieces=st.lists(st.sampled_from(PIECES) | st.binary(max_size=40), max_size=30))
@pytest.mark.parametrize("container", MAGIC)
def test_no_bytes_are_too_much_for_a_look(container: str, pieces: list[bytes]) -> None:
    content = MAGIC[container] + b"".join(pieces)
    with TemporaryFile() as file:
        for length in (len(content), *range(min(40, len(content)))):
            file.seek(0)
            file.truncate()
            file.write(content[:length])
            file.flush()
            source = Source(file.fileno(), None, file.fileno())
            assert is_cut_off(source, container) in (False, True)
            assert source.bytes_read <= length


def test_what_looks_like_a_page_within_a_page_does_not_make_an_ogg_file_look_cut_off(
    tmp_path: Path,
) -> None:
    path = tmp_path / "video.ogv"
    with av.open(str(path), "w", format="ogg") as file:
        video = file.add_stream("libvpx", rate=RATE)
        sound = file.add_stream("libopus", rate=48_000)
        assert isinstance(video, av.VideoStream)
        video.width, video.height, video.pix_fmt = 160, 90, "yuv420p"
        for number in range(RATE):
            picture = scene(number)
            picture.pts, picture.time_base = number, Fraction(1, RATE)
            file.mux(video.encode(picture))
        file.mux(video.encode(None))
        packet = av.Packet(b"\xfcOggS" + bytes(50))
        packet.stream, packet.time_base = sound, Fraction(1, 48_000)
        packet.pts = packet.dts = 48_000
        file.mux(packet)
    assert path.read_bytes().rfind(b"\xfcOggS") > path.stat().st_size - 100

    assert not make(path).done.is_degraded
