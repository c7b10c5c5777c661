"""Which frames are picked, beside a full decode that picks them as the contract says."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from data_plane.decoders.encoding import encode
from data_plane.decoders.messages import FrameMeasure
from data_plane.decoders.stills import draw
from mediaplane.protocol.values import ThumbnailFormat
from tests.support.videos import decode_all, expected_frames, make, scene, write_video

OPEN_GOP = {"x264-params": "open-gop=1:bframes=3:b-adapt=0:scenecut=0:log-level=-1"}
HEVC = {"x265-params": "open-gop=1:bframes=3:keyint=20:scenecut=0:log-level=none"}


@pytest.mark.parametrize("sampling_limit", [1, 3, 10, 100])
@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("closed.mp4", "libx264", {"x264-params": "bframes=3:scenecut=0:log-level=-1"}),
        ("open.mp4", "libx264", OPEN_GOP),
        ("open.mkv", "libx264", OPEN_GOP),
        ("hevc.mp4", "libx265", HEVC),
        ("mpeg4.mkv", "mpeg4", {"bf": "2"}),
        ("vp9.webm", "libvpx-vp9", {"deadline": "realtime", "cpu-used": "8"}),
        ("vp8.webm", "libvpx", {"deadline": "realtime", "auto-alt-ref": "1"}),
        ("mpeg2.mkv", "mpeg2video", {"bf": "2"}),
        ("every.mov", "mjpeg", {}),
    ],
)
def test_frames_are_those_of_the_contract(
    tmp_path: Path, name: str, codec: str, options: dict[str, str], sampling_limit: int
) -> None:
    pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    path = write_video(tmp_path / name, codec, pix_fmt=pix_fmt, options=options)

    result = make(path, sampling_limit=sampling_limit)

    assert not result.done.is_degraded
    assert result.done.frames == expected_frames(path, sampling_limit, 4000)


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("video.avi", "mpeg4", {"bf": "2"}),
        ("plain.avi", "mpeg4", {}),
        ("video.mpg", "mpeg1video", {"bf": "2"}),
        ("dvd.mpg", "mpeg2video", {"bf": "2"}),
        ("video.ts", "libx264", OPEN_GOP),
        ("video.flv", "flv", {}),
        ("video.wmv", "wmv2", {}),
    ],
)
def test_every_timestamp_is_that_of_a_frame_in_any_container(
    tmp_path: Path, name: str, codec: str, options: dict[str, str]
) -> None:
    path = write_video(tmp_path / name, codec, options=options)
    decoded = decode_all(path)

    result = make(path, sampling_limit=20)

    assert len(result.done.frames) >= 19
    assert {one.timestamp_ms: one.is_keyframe for one in result.done.frames}.items() <= {
        time: frame.key_frame for time, frame in decoded.items()
    }.items()


def test_pictures_whose_times_a_container_does_not_tell_are_shown_in_the_order_of_decoding(
    tmp_path: Path,
) -> None:
    path = write_video(
        tmp_path / "reordered.avi", options={"x264-params": "bframes=3:log-level=-1"}
    )
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    assert [frame.pts for frame in frames] != sorted(frame.pts or 0 for frame in frames)

    result = make(path)

    assert result.timestamps_ms == [40 * number for number in range(100)]
    assert [one.is_keyframe for one in result.done.frames] == [one.key_frame for one in frames]
    stored = result.frame_files()
    for one, frame in zip(result.done.frames, frames, strict=True):
        still = draw(frame, one, Fraction(1), 1024)
        assert stored[one.timestamp_ms] == encode(still.image, ThumbnailFormat.JPEG)


@pytest.mark.parametrize("sampling_limit", [1, 3, 10, 100])
@pytest.mark.parametrize("gop", [20, 1000])
def test_a_container_that_tells_no_times_has_the_frames_of_one_that_does(
    tmp_path: Path, gop: int, sampling_limit: int
) -> None:
    told = write_video(tmp_path / "open.mkv", gop=gop, options=OPEN_GOP)
    untold = write_video(tmp_path / "open.avi", gop=gop, options=OPEN_GOP)

    result = make(untold, sampling_limit=sampling_limit)

    assert not result.done.is_degraded
    assert result.done.frames == expected_frames(told, sampling_limit, 4000)


@pytest.mark.parametrize("name", ["open.mp4", "open.mkv", "open.ts"])
def test_stored_frames_are_those_of_a_full_decode(tmp_path: Path, name: str) -> None:
    path = write_video(tmp_path / name, gop=30, options=OPEN_GOP)
    decoded = decode_all(path)

    result = make(path, sampling_limit=50)

    stored = result.frame_files()
    assert list(stored) == result.timestamps_ms
    for frame in result.done.frames:
        still = draw(decoded[frame.timestamp_ms], frame, Fraction(1), 1024)
        assert stored[frame.timestamp_ms] == encode(still.image, ThumbnailFormat.JPEG)


def test_a_video_with_a_single_keyframe_still_has_a_frame_in_every_window(tmp_path: Path) -> None:
    path = write_video(
        tmp_path / "single.mp4",
        frames=300,
        gop=1000,
        options={"x264-params": "scenecut=0:log-level=-1"},
    )

    result = make(path, sampling_limit=20)

    assert result.done.frames == expected_frames(path, 20, 12_000)
    assert [frame.is_keyframe for frame in result.done.frames] == [True, *[False] * 19]


def test_frames_at_varying_intervals_are_those_shown_at_the_centres(tmp_path: Path) -> None:
    times = [0, 1, 2, 40, 41, 90, 91, 92, 93, 200, 249]
    path = write_video(tmp_path / "varying.mkv", frames=len(times), times=times, gop=4)

    result = make(path, sampling_limit=10)

    assert result.done.duration_ms == 10_000
    assert result.done.frames == expected_frames(path, 10, 10_000)


def test_a_short_video_has_each_of_its_frames_once(tmp_path: Path) -> None:
    path = write_video(tmp_path / "short.mp4", frames=7)

    assert make(path).timestamps_ms == [0, 40, 80, 120, 160, 200, 240]


def test_a_video_of_one_frame_has_one(tmp_path: Path) -> None:
    path = write_video(tmp_path / "one.mp4", frames=1)

    assert make(path).timestamps_ms == [0]


@pytest.mark.parametrize("name", ["long.mp4", "long.mkv"])
def test_sound_that_goes_on_does_not_stretch_the_windows(tmp_path: Path, name: str) -> None:
    path = write_video(tmp_path / name, sound_seconds=12)

    result = make(path, sampling_limit=10)

    assert result.done.duration_ms == 4000
    assert result.done.frames == expected_frames(path, 10, 4000)


def test_timestamps_are_those_of_a_stream_that_begins_late(tmp_path: Path) -> None:
    times = list(range(250, 350))
    path = write_video(tmp_path / "late.mkv", times=times)

    result = make(path, sampling_limit=10)

    assert result.timestamps_ms[0] == 10_000
    assert result.done.frames == expected_frames(path, 10, 4000, start_ms=10_000)


def test_the_other_measure_may_choose_another_keyframe(tmp_path: Path) -> None:
    pictures = [scene(number * 17) for number in range(30)]
    path = write_video(tmp_path / "all.mp4", "mjpeg", frames=pictures, pix_fmt="yuvj420p")

    by_error = make(path, sampling_limit=3)
    by_structure = make(path, sampling_limit=3, measure=FrameMeasure.SSIM)

    assert by_error.timestamps_ms != by_structure.timestamps_ms
    assert len(by_structure.timestamps_ms) == 3
