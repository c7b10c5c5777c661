"""What is made of videos, and which are refused."""

import hashlib
import os
from collections.abc import Callable
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import blake3
import numpy as np
import pytest
from av import VideoFrame
from av.video.reformatter import ColorPrimaries, Colorspace, ColorTrc
from PIL import Image

from data_plane.decoders import sources
from data_plane.decoders.messages import DecodeFailed, Failure, Frame, Limits, Output, Product
from data_plane.decoders.stills import draw
from mediaplane.protocol.values import HashAlgorithm
from tests.support.videos import FRAMES, INDEX, SPRITE, make, scene, write_video

POSTER = Output(Product.PICTURE, 320)


def flat(level: int, width: int = 160, height: int = 90) -> VideoFrame:
    return VideoFrame.from_ndarray(np.full((height, width, 3), level, np.uint8), "rgb24")


def cut_off(path: Path, share: float) -> Path:
    os.truncate(path, int(path.stat().st_size * share))
    return path


def failure(path: Path, limits: Limits | None = None) -> Failure:
    with pytest.raises(DecodeFailed) as caught:
        make(path, limits=limits)
    return caught.value.failed.code


@pytest.mark.parametrize("name", ["end.mp4", "video.mkv", "video.avi", "video.ts", "video.mpg"])
@pytest.mark.parametrize(
    ("algorithm", "digest_of"),
    [
        (HashAlgorithm.SHA256, lambda content: hashlib.sha256(content).digest()),
        (HashAlgorithm.BLAKE3, lambda content: blake3.blake3(content).digest()),
    ],
)
def test_a_video_is_fetched_once_and_hashed_on_the_way(
    tmp_path: Path,
    name: str,
    algorithm: HashAlgorithm,
    digest_of: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "_WHOLE_BLOCK_BYTES", 1024)
    codec = "mpeg2video" if name.endswith("mpg") else "mpeg4"
    path = write_video(tmp_path / name, codec, sound_seconds=4 if name == "end.mp4" else 0)
    content = path.read_bytes()

    result = make(path, FRAMES, hash_algorithm=algorithm)

    assert len(content) > 10 * 1024
    assert result.done.digest == digest_of(content)
    assert result.done.bytes_read == len(content)


def test_a_poster_alone_reads_little_of_a_long_video(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (360, 640, 3), np.uint8)
    noise[:, 320:] //= 4
    pictures = [VideoFrame.from_ndarray(noise, "rgb24") for _ in range(200)]
    path = write_video(tmp_path / "long.mov", "mjpeg", frames=pictures, pix_fmt="yuvj420p")

    result = make(path, POSTER)

    assert 0 < result.done.bytes_read < 0.5 * path.stat().st_size
    assert result.done.frames == []
    assert result.image().size == (320, 180)


def test_the_poster_is_not_a_black_frame(tmp_path: Path) -> None:
    pictures = [*(flat(0) for _ in range(40)), *(scene(5) for _ in range(20))]
    path = write_video(tmp_path / "dark.mp4", frames=pictures, gop=10)

    for result in (make(path, POSTER), make(path, POSTER, FRAMES)):
        assert result.done.poster_ms is not None
        assert result.done.poster_ms >= 1600
        assert np.asarray(result.image()).std() > 20


def test_the_poster_is_found_behind_the_only_keyframe(tmp_path: Path) -> None:
    pictures = [*(flat(0) for _ in range(20)), *(scene(5) for _ in range(40))]
    options = {"x264-params": "keyint=infinite:scenecut=0:log-level=-1"}
    path = write_video(tmp_path / "dark.mp4", frames=pictures, gop=1000, options=options)

    assert np.asarray(make(path, POSTER).image()).std() > 20


def test_the_poster_of_a_black_video_is_its_first_frame(tmp_path: Path) -> None:
    path = write_video(tmp_path / "black.mp4", frames=[flat(0) for _ in range(50)])

    assert make(path, POSTER, FRAMES).done.poster_ms == 0


def test_a_sprite_has_ten_columns_and_its_index_covers_the_video(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mp4")

    result = make(path, SPRITE, INDEX, sampling_limit=25)

    assert result.image().size == (1600, 270)
    lines = result.files[1].decode().splitlines()
    assert lines[0] == "WEBVTT"
    cues = [line.split(" --> ") for line in lines if "-->" in line]
    assert len(cues) == 25
    assert (cues[0][0], cues[-1][1]) == ("00:00:00.000", "00:00:04.000")
    assert [end for _, end in cues[:-1]] == [begin for begin, _ in cues[1:]]
    assert lines[2 + 3 * 24 + 1] == "sprite#xywh=640,180,160,90"


@pytest.mark.parametrize("name", ["video.mkv", "video.mpg", "video.avi"])
def test_a_video_that_was_cut_off_gives_what_is_there(tmp_path: Path, name: str) -> None:
    path = cut_off(write_video(tmp_path / name, "mpeg2video"), 0.6)

    result = make(path, sampling_limit=20)

    assert len(result.done.frames) > 5
    assert max(result.timestamps_ms) < 3600
    assert result.done.is_degraded


def test_a_video_that_was_cut_off_behind_its_index_gives_what_is_there(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mp4", container={"movflags": "faststart"})

    result = make(cut_off(path, 0.6), sampling_limit=20)

    assert result.done.is_degraded
    assert 5 < len(result.done.frames) < 20


def test_a_turned_video_is_shown_upright(tmp_path: Path) -> None:
    picture = np.zeros((90, 160, 3), np.uint8)
    picture[:, :80] = 255
    frames = [VideoFrame.from_ndarray(picture, "rgb24") for _ in range(5)]
    path = write_video(tmp_path / "turned.mp4", frames=frames, rotation=90)

    result = make(path, POSTER, FRAMES)

    assert (result.done.width, result.done.height) == (90, 160)
    shown = np.asarray(result.image().convert("L"))
    # Turned by 90 degrees against the clock, what was on the left is at the bottom.
    assert shown[:70].mean() < 20
    assert shown[90:].mean() > 235


def test_pixels_that_are_not_square_are_shown_square(tmp_path: Path) -> None:
    path = write_video(tmp_path / "wide.mp4", frames=5, pixel_aspect=Fraction(4, 3))

    result = make(path, POSTER, FRAMES)

    assert (result.done.width, result.done.height) == (213, 90)
    assert result.image().size == (213, 90)


def test_a_white_of_hdr_becomes_a_white_that_is_not_cut_off() -> None:
    def shown(signal: float) -> float:
        level = np.full((16, 16, 3), int(signal * 65535), np.uint16)
        frame = VideoFrame.from_ndarray(level, "rgb48le").reformat(
            format="yuv420p10le", dst_colorspace=Colorspace.BT2020
        )
        frame.color_trc, frame.color_primaries = ColorTrc.SMPTE2084, ColorPrimaries.BT2020
        frame.colorspace = Colorspace.BT2020
        return float(draw(frame, Frame(0, True), Fraction(1), 16).image.avg())

    black, grey, white, sun = shown(0), shown(0.38), shown(0.58), shown(0.75)

    assert black == 0
    assert 80 < grey < 130
    assert 220 < white < sun <= 255


def test_a_file_of_no_bytes_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "video.mp4").touch()

    with pytest.raises(DecodeFailed) as raised:
        make(tmp_path / "video.mp4")

    assert raised.value.failed.code is Failure.BROKEN
    assert raised.value.failed.message.startswith("It is empty:")


def test_what_is_not_a_video_is_refused(tmp_path: Path) -> None:
    photo = BytesIO()
    Image.new("RGB", (8, 8)).save(photo, "PNG")
    contents = {
        b"no video at all" * 100: Failure.UNSUPPORTED,
        photo.getvalue(): Failure.UNSUPPORTED,
        b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.ts\n": Failure.UNSUPPORTED,
        b"ffconcat version 1.0\nfile 'other.mp4'\n": Failure.UNSUPPORTED,
        b"\0\0\0\x18ftypisom\0\0\0\0isomiso2": Failure.BROKEN,
        b"\x1a\x45\xdf\xa3" + b"\xff" * 100: Failure.BROKEN,
    }
    path = tmp_path / "file"

    found = {}
    for content in contents:
        path.write_bytes(content)
        found[content] = failure(path)

    assert found == contents


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "sound.m4a"
    with av.open(str(path), "w", format="mp4") as file:
        stream = file.add_stream("aac", rate=8000)
        assert isinstance(stream, av.AudioStream)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), "fltp", "mono")
        sound.sample_rate = 8000
        file.mux(stream.encode(sound))
        file.mux(stream.encode(None))

    assert failure(path) is Failure.NO_VIDEO


def test_a_video_beyond_a_limit_is_refused(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mp4")

    assert failure(path, Limits(max_pixels=160 * 90 - 1)) is Failure.TOO_LARGE
    assert failure(path, Limits(max_duration_seconds=3.9)) is Failure.TOO_LARGE
    assert make(path, limits=Limits(max_pixels=160 * 90, max_duration_seconds=4.0)).done.frames
