"""A frame is shown as its video says, unless that is absurd."""

import struct
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av import VideoFrame
from PIL import Image

from data_plane.decoders.messages import Frame
from data_plane.decoders.stills import draw
from tests.support.pictures import corner_colours, corners, differ_by, picture, saved
from tests.support.videos import FRAMES, make, write_video

ONE = 1 << 16


@pytest.mark.parametrize(
    ("pixel_aspect", "width"),
    [
        (Fraction(16), 2560),
        (Fraction(1, 16), 10),
        (Fraction(17), 160),
        (Fraction(1, 17), 160),
        (Fraction(65535), 160),
    ],
)
def test_pixels_of_an_absurd_shape_are_shown_square(
    tmp_path: Path, pixel_aspect: Fraction, width: int
) -> None:
    path = write_video(tmp_path / "wide.mp4", "mpeg4", frames=2, pixel_aspect=pixel_aspect)
    done = make(path, FRAMES).done
    assert (done.width, done.height) == (width, 90)


# By the two rows of the matrix that a container has for it: where right and down then point.
@pytest.mark.parametrize(
    ("matrix", "turn"),
    [
        ((-ONE, 0, 0, ONE), Image.Transpose.FLIP_LEFT_RIGHT),
        ((ONE, 0, 0, -ONE), Image.Transpose.FLIP_TOP_BOTTOM),
        ((0, ONE, ONE, 0), Image.Transpose.TRANSPOSE),
        ((0, -ONE, -ONE, 0), Image.Transpose.TRANSVERSE),
        ((0, ONE, -ONE, 0), Image.Transpose.ROTATE_270),
        ((-ONE, 0, 0, -ONE), Image.Transpose.ROTATE_180),
        ((0, -ONE, ONE, 0), Image.Transpose.ROTATE_90),
        ((ONE, 0, 0, ONE), None),
        # Squeezed to nothing, or to a line.
        ((0, 0, 0, 0), None),
        ((0, 0, 0, ONE), None),
    ],
)
def test_a_video_is_turned_and_mirrored_as_it_says(
    tmp_path: Path, matrix: Sequence[int], turn: Image.Transpose | None
) -> None:
    stored = corners(160, 96)
    frames = [VideoFrame.from_ndarray(np.asarray(stored), "rgb24") for _ in range(3)]
    path = write_video(tmp_path / "mirrored.mp4", frames=frames)
    content = bytearray(path.read_bytes())
    # The matrix is the last but the size of a track's header, whose content has 84 bytes.
    at = content.index(b"tkhd") + 4 + 84 - 8 - 36
    for offset, number in zip((0, 4, 12, 16), matrix, strict=True):
        struct.pack_into(">i", content, at + offset, number)
    path.write_bytes(content)

    result = make(path, picture(320))

    expected = stored if turn is None else stored.transpose(turn)
    shown = result.image().convert("RGB")
    assert shown.size == (result.done.width, result.done.height) == expected.size
    for found, colour in zip(corner_colours(shown), corner_colours(expected), strict=True):
        assert differ_by(found, colour) <= 16


def test_a_video_of_photos_with_exif_is_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    photo = av.Packet(saved(corners(160, 96), "JPEG", exif=exif))
    path = tmp_path / "photos.avi"
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mjpeg", rate=25)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuvj420p"
        photo.stream, photo.pts, photo.dts, photo.is_keyframe = stream, 0, 0, True
        file.mux(photo)

    shown = make(path, picture(320)).image().convert("RGB")

    expected = corners(160, 96).transpose(Image.Transpose.ROTATE_270)
    assert shown.size == (96, 160)
    for found, colour in zip(corner_colours(shown), corner_colours(expected), strict=True):
        assert differ_by(found, colour) <= 16


def test_a_frame_that_was_drawn_is_let_go(tmp_path: Path) -> None:
    with av.open(str(write_video(tmp_path / "plain.mp4", "mpeg4", frames=2))) as file:
        frame = next(file.decode(video=0))
    references = sys.getrefcount(frame)
    still = draw(frame, Frame(0, is_keyframe=True), Fraction(1), 160)
    assert (still.width, still.height) == (160, 90)
    # A large video has frames of a hundred megabytes, and the collector comes seldom.
    assert sys.getrefcount(frame) == references
