"""Writes videos, orders frames of them in this process, and decodes them as a whole beside that."""

import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import numpy as np
from av import VideoFrame
from PIL import Image

from data_plane.decoders import videos
from data_plane.decoders.messages import Done, Frame, FrameMeasure, Limits, Order, Output, Product
from mediaplane.protocol.values import HashAlgorithm, MediaType

FRAMES, SPRITE, INDEX = (
    Output(Product.FRAMES, 1024),
    Output(Product.SPRITE, 160),
    Output(Product.SPRITE_INDEX, 160),
)
RATE = 25


@dataclass(frozen=True)
class Result:
    """What came of an order, and the files that were made."""

    done: Done
    files: list[bytes]

    @property
    def timestamps_ms(self) -> list[int]:
        return [frame.timestamp_ms for frame in self.done.frames]

    def image(self, number: int = 0) -> Image.Image:
        return Image.open(BytesIO(self.files[number]))

    def frame_files(self, number: int = 0) -> dict[int, bytes]:
        with zipfile.ZipFile(BytesIO(self.files[number])) as archive:
            return {int(Path(name).stem): archive.read(name) for name in archive.namelist()}


def make(
    path: Path,
    *outputs: Output,
    sampling_limit: int = 100,
    measure: FrameMeasure = FrameMeasure.MSE,
    hash_algorithm: HashAlgorithm | None = None,
    limits: Limits | None = None,
) -> Result:
    """Make outputs of a video; its frames if nothing is said."""
    outputs = outputs or (FRAMES,)
    order = Order(
        MediaType.VIDEO, outputs, limits or Limits(), "", hash_algorithm, sampling_limit, measure
    )
    source = os.open(path, os.O_RDONLY)
    targets = [os.memfd_create("made") for _ in outputs]
    try:
        done = videos.make(order, source, targets)
        return Result(done, [os.pread(fd, 1 << 26, 0) for fd in targets])
    finally:
        for fd in (source, *targets):
            os.close(fd)


def scene(number: int, width: int = 160, height: int = 90) -> VideoFrame:
    """Return a picture that differs from all others nearby."""
    across = np.arange(width)[np.newaxis, :]
    down = np.arange(height)[:, np.newaxis]
    red = np.broadcast_to((across * 2 + number * 7) % 256, (height, width))
    green = np.broadcast_to((down * 3 + number * 11) % 256, (height, width))
    blue = np.full((height, width), number * 37 % 256)
    return VideoFrame.from_ndarray(np.dstack([red, green, blue]).astype(np.uint8), "rgb24")


def write_video(
    path: Path,
    codec: str = "libx264",
    *,
    frames: int | Iterable[VideoFrame] = 100,
    times: Sequence[int] | None = None,
    gop: int = 20,
    pix_fmt: str = "yuv420p",
    rotation: int = 0,
    pixel_aspect: Fraction | None = None,
    sound_seconds: int = 0,
    container: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
) -> Path:
    """Write a video of 25 frames a second, or of frames at given times, in units of 1/25 s."""
    pictures = [scene(number) for number in range(frames)] if isinstance(frames, int) else frames
    with av.open(str(path), "w", options=container or {}) as file:
        stream = file.add_stream(codec, rate=RATE, options=options or {})
        assert isinstance(stream, av.VideoStream)
        stream.pix_fmt, stream.gop_size = pix_fmt, gop
        if pixel_aspect:
            stream.codec_context.sample_aspect_ratio = pixel_aspect
        if rotation:
            stream.set_display_rotation(rotation)
        sound = file.add_stream("aac", rate=8000) if sound_seconds else None
        for number, picture in enumerate(pictures):
            if not number:
                stream.width, stream.height = picture.width, picture.height
            picture.pts = times[number] if times else number
            picture.time_base = Fraction(1, RATE)
            file.mux(stream.encode(picture))
        file.mux(stream.encode(None))
        if isinstance(sound, av.AudioStream):
            for second in range(sound_seconds):
                samples = np.zeros((1, 8000), np.float32)
                noise = av.AudioFrame.from_ndarray(samples, "fltp", "mono")
                noise.sample_rate, noise.pts = 8000, second * 8000
                file.mux(sound.encode(noise))
            file.mux(sound.encode(None))
    return path


def decode_all(path: Path) -> dict[int, VideoFrame]:
    """Return every frame of a video by its timestamp."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        base = stream.time_base or Fraction(1)
        return {
            round((frame.pts if frame.pts is not None else frame.dts or 0) * base * 1000): frame
            for frame in container.decode(stream)
        }


def expected_frames(
    path: Path, sampling_limit: int, duration_ms: int, start_ms: int = 0
) -> list[Frame]:
    """Choose frames as the contract says, from all frames of a video."""
    decoded = decode_all(path)
    chosen: dict[int, Frame] = {}
    for number in range(sampling_limit):
        begin = start_ms + Fraction(duration_ms * number, sampling_limit)
        end = start_ms + Fraction(duration_ms * (number + 1), sampling_limit)
        keys = [time for time, one in decoded.items() if one.key_frame and begin <= time < end]
        if keys:
            time = _most_typical(keys, decoded)
        else:
            shown = [time for time in decoded if time <= (begin + end) / 2]
            if not shown:
                continue
            time = max(shown)
        chosen.setdefault(time, Frame(time, decoded[time].key_frame))
    return list(chosen.values())


def _most_typical(times: Sequence[int], decoded: dict[int, VideoFrame]) -> int:
    small = [
        decoded[time].reformat(32, 32, "rgb24", interpolation="AREA").to_ndarray().astype(float)
        for time in times
    ]
    mean = sum(small) / len(small)
    errors = [float(np.mean((one - mean) ** 2)) for one in small]
    return times[errors.index(min(errors))]
