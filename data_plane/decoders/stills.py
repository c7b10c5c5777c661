"""Makes a picture of a frame as it is shown: upright, with square pixels, in sRGB."""

import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyvips
from av import VideoFrame
from av.video.reformatter import Colorspace, VideoReformatter

from data_plane.decoders.hdr import is_hdr, map_tones
from data_plane.decoders.messages import Frame
from data_plane.decoders.windows import MINIATURE_PX, Miniature

# Of a frame that does not say how its colours are coded, players guess it by its height.
_MAX_SD_HEIGHT_PX = 576
_UNSPECIFIED, _RESERVED = 2, 3
# Wider or taller pixels than any format has; a file may claim whatever it likes.
_MAX_PIXEL_ASPECT = 16

# They keep the tables of the last size; to set these up takes longer than to scale a small frame.
_DRAWING, _SHRINKING = VideoReformatter(), VideoReformatter()


# Pictures and arrays do not compare to true or false.
@dataclass(frozen=True, eq=False)
class Still:
    """A frame as a picture, which may be smaller than the frame is shown."""

    frame: Frame
    width: int
    height: int
    image: pyvips.Image
    miniature: Miniature


def draw(frame: VideoFrame, described: Frame, pixel_aspect: Fraction, size_px: int) -> Still:
    """Return a picture of a frame, with a longer side of so many pixels at most."""
    if not Fraction(1, _MAX_PIXEL_ASPECT) <= pixel_aspect <= _MAX_PIXEL_ASPECT:
        pixel_aspect = Fraction(1)
    width, height = max(1, round(frame.width * pixel_aspect)), frame.height
    scale = min(1.0, size_px / max(width, height))
    small = _DRAWING.reformat(
        frame,
        max(1, round(width * scale)),
        max(1, round(height * scale)),
        "rgb48le" if is_hdr(frame) else "rgb24",
        src_colorspace=_guess_colorspace(frame),
        interpolation="BICUBIC",
    )
    image = pyvips.Image.new_from_array(np.ascontiguousarray(small.to_ndarray()))
    image = map_tones(image, frame) if is_hdr(frame) else image.copy(interpretation="srgb")
    tiny = _shrunk(frame)
    is_mirrored, quarter_turns = _turns(tiny)
    if is_mirrored:
        image = image.flipver()
    if quarter_turns % 2:
        width, height = height, width
    if quarter_turns:
        image = (image.rot90, image.rot180, image.rot270)[quarter_turns - 1]()
    if is_mirrored or quarter_turns or is_hdr(frame):
        image = image.copy_memory()  # all others are in memory already
    return Still(described, width, height, image, _as_miniature(tiny))


def _turns(frame: VideoFrame) -> tuple[bool, int]:
    """Return whether to mirror a frame top to bottom, and how many quarters to turn it then.

    Of a frame that is tiny: one that was asked for its side data refers to itself, and stays until
    the collector happens to come by.
    """
    quarter_turns = round(-frame.rotation / 90) % 4
    try:
        # PyAV's types know of one key alone.
        matrix = bytes(frame.side_data["DISPLAYMATRIX"])  # type: ignore[typeddict-item]
    except KeyError:
        return False, 0
    except ValueError:
        # PyAV gives nothing of a frame that has side data too new for it, such as EXIF.
        return False, quarter_turns
    # The angle alone does not tell a mirrored frame from a turned one.
    right_x, right_y, _, down_x, down_y = struct.unpack_from("=5i", matrix)
    area = right_x * down_y - right_y * down_x
    # What squeezes a frame to a line has no angle either.
    return area < 0, quarter_turns if area else 0


def shrink(frame: VideoFrame) -> Miniature:
    """Return a frame in 32 x 32 pixels."""
    return _as_miniature(_shrunk(frame))


def _shrunk(frame: VideoFrame) -> VideoFrame:
    return _SHRINKING.reformat(frame, MINIATURE_PX, MINIATURE_PX, "rgb24", interpolation="AREA")


def _as_miniature(tiny: VideoFrame) -> Miniature:
    return np.asarray(tiny.to_ndarray(), dtype=np.uint8)


def _guess_colorspace(frame: VideoFrame) -> int | None:
    if frame.colorspace not in (_UNSPECIFIED, _RESERVED):
        return None
    is_sd = frame.height <= _MAX_SD_HEIGHT_PX
    return Colorspace.ITU601 if is_sd else Colorspace.ITU709
