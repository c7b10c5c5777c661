"""Frames beside what FFmpeg's own commands write, decode and tell of a video."""

import os
from fractions import Fraction
from pathlib import Path

import av
import pytest

from data_plane.decoders.encoding import encode
from data_plane.decoders.stills import draw
from mediaplane.protocol.values import ThumbnailFormat
from tests.support.ffmpeg import needs_ffmpeg, shown_at_ms, write_clip
from tests.support.videos import Result, make

pytestmark = needs_ffmpeg

X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "20")
B_FRAMES = (*X264, "-x264-params", "bframes=3:b-adapt=0:scenecut=0")
OPEN_GOP = (*X264, "-x264-params", "open-gop=1:bframes=3:b-adapt=0:scenecut=0")
SINE = ("-f", "lavfi", "-i", "sine=duration=4", "-c:a")
SOUND = ("-f", "lavfi", "-i", "sine=duration=12", "-c:a", "aac")
CLIPS = {
    "plain.mp4": X264,
    "reordered.mov": B_FRAMES,
    "open.mkv": OPEN_GOP,
    "open.ts": OPEN_GOP,
    "video.webm": ("-c:v", "libvpx", "-deadline", "realtime", "-g", "20"),
    "plain.avi": ("-c:v", "mpeg4", "-g", "20"),
    "packed.avi": ("-c:v", "mpeg4", "-bf", "2", "-g", "20"),
    "untold.avi": B_FRAMES,
    "open.avi": OPEN_GOP,
    "video.mpg": ("-c:v", "mpeg1video", "-bf", "2", "-g", "15"),
    "dvd.mpg": ("-c:v", "mpeg2video", "-bf", "2", "-g", "15"),
    "video.ogv": ("-c:v", "libtheora", "-g", "20"),
    "video.wmv": ("-c:v", "wmv2", "-g", "20"),
    "video.flv": ("-c:v", "flv", "-g", "20"),
    "single.mp4": (*B_FRAMES, "-g", "1000"),
    "varying.mkv": (*B_FRAMES, "-vf", "select='not(mod(n,7))+gt(n,60)'", "-fps_mode", "vfr"),
    "sound.mp4": (*SOUND, *B_FRAMES),
    "endless.mkv": (*B_FRAMES, "-live", "1"),
}
# Of 30 windows; in some of these a picture stands still.
FEWEST = {"varying.mkv": 20}


def check(path: Path, result: Result) -> None:
    """Compare all frames with those that FFmpeg shows."""
    with av.open(str(path)) as container:
        decoded = list(container.decode(video=0))
    shown = dict(zip(shown_at_ms(path), decoded, strict=True))
    assert set(result.timestamps_ms) <= set(shown)
    stored = result.frame_files()
    assert list(stored) == result.timestamps_ms
    for frame in result.done.frames:
        expected = shown[frame.timestamp_ms]
        assert frame.is_keyframe == expected.key_frame
        still = draw(expected, frame, Fraction(1), 1024)
        assert stored[frame.timestamp_ms] == encode(still.image, ThumbnailFormat.JPEG)


@pytest.mark.parametrize("name", CLIPS)
def test_frames_and_their_times_are_those_that_ffmpeg_shows(tmp_path: Path, name: str) -> None:
    path = write_clip(tmp_path / name, *CLIPS[name])
    result = make(path, sampling_limit=30)
    assert len(result.done.frames) >= FEWEST.get(name, 28)
    assert not result.done.is_degraded
    check(path, result)


def test_a_video_shorter_than_its_windows_has_the_frames_that_ffmpeg_shows(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "short.mp4", *B_FRAMES, seconds=0.2)
    result = make(path)
    assert result.timestamps_ms == shown_at_ms(path)
    check(path, result)


@pytest.mark.parametrize("name", ["open.mkv", "plain.avi", "open.avi"])
def test_what_is_left_of_a_video_has_the_frames_that_ffmpeg_shows(
    tmp_path: Path, name: str
) -> None:
    path = write_clip(tmp_path / name, *CLIPS[name])
    os.truncate(path, path.stat().st_size * 6 // 10)
    result = make(path, sampling_limit=20)
    assert result.done.is_degraded
    assert set(result.timestamps_ms) <= set(shown_at_ms(path))


WITH_SOUND = {
    "video.ogv": (*SINE, "libvorbis", *CLIPS["video.ogv"]),
    "video.wmv": (*SINE, "wmav2", *CLIPS["video.wmv"]),
    "open.ts": (*SINE, "aac", *OPEN_GOP),
    "blu.m2ts": (*SINE, "aac", *OPEN_GOP),
    "open.mkv": (*SINE, "aac", *OPEN_GOP),
}


@pytest.mark.parametrize("name", WITH_SOUND)
def test_a_video_is_degraded_when_its_end_is_missing_and_only_then(
    tmp_path: Path, name: str
) -> None:
    path = write_clip(tmp_path / name, *WITH_SOUND[name])
    whole = path.stat().st_size
    assert not make(path, sampling_limit=5).done.is_degraded
    for missing in (1, whole // 30, whole // 2):
        # Odd: what ends with a whole packet of a transport stream shows no cut.
        os.truncate(path, whole - (missing | 1))
        assert make(path, sampling_limit=5).done.is_degraded
