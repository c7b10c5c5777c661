"""Loads RAW pictures of cameras: the preview that a camera embeds, or else the sensor's data."""

from io import BytesIO

import numpy as np
import pyvips
import rawpy
from numpy.typing import NDArray

from data_plane.decoders import vips_loader
from data_plane.decoders.encoding import scale_down
from data_plane.decoders.gate import refuse_too_large
from data_plane.decoders.loaded import Loaded, Undecodable
from data_plane.decoders.messages import Limits
from data_plane.decoders.sniff import Format

# How LibRaw says that a camera was held, and how far its picture is to be turned clockwise.
_TURNS = {3: "d180", 5: "d270", 6: "d90"}


def load(
    content: bytes, found: Format, size_px: int, limits: Limits, *, is_tolerant: bool
) -> Loaded:
    """Load a RAW picture; developing it takes a hundred times as long as its preview."""
    del found, is_tolerant  # as every loader is called
    try:
        # Not rawpy.imread, which imports what a sandbox keeps it from.
        with rawpy.RawPy() as raw:
            raw.open_buffer(BytesIO(content))
            refuse_too_large(raw.sizes.raw_width, raw.sizes.raw_height, limits)
            width, height = raw.sizes.width, raw.sizes.height
            if raw.sizes.flip in {5, 6}:
                width, height = height, width
            image = _preview(raw, size_px, limits, is_portrait=height > width)
            # Some cameras embed little more than an icon.
            if image is None or max(image.width, image.height) < min(size_px, max(width, height)):
                image = _developed(raw, size_px)
    except rawpy.LibRawUnsufficientMemoryError:
        raise MemoryError from None
    except (rawpy.LibRawError, rawpy.NotSupportedError, pyvips.Error, ValueError) as error:
        raise Undecodable(str(error)) from None
    return Loaded(image, width, height)


def _preview(
    raw: rawpy.RawPy, size_px: int, limits: Limits, *, is_portrait: bool
) -> pyvips.Image | None:
    """Return the embedded preview, upright, if there is one that can be decoded."""
    try:
        embedded = raw.extract_thumb()
    except (rawpy.LibRawError, rawpy.NotSupportedError):
        return None
    if isinstance(embedded.data, bytes):
        try:
            image = vips_loader.load(
                embedded.data, Format.JPEG, size_px, limits, is_tolerant=False
            ).image
        except Undecodable:
            return None
        # Most previews say themselves how they are to be turned, and have been by now.
        is_upright = (image.height > image.width) == is_portrait
    else:
        image = scale_down(_to_vips(embedded.data), size_px)
        is_upright = raw.sizes.flip not in _TURNS
    return image if is_upright else image.rot(_TURNS.get(raw.sizes.flip, "d0"))


def _developed(raw: rawpy.RawPy, size_px: int) -> pyvips.Image:
    """Return the sensor's picture, of half its size: four cells make one pixel."""
    pixels = raw.postprocess(half_size=True, use_camera_wb=True)
    return scale_down(_to_vips(pixels), size_px)


def _to_vips(pixels: NDArray[np.uint8]) -> pyvips.Image:
    return pyvips.Image.new_from_array(pixels, interpretation="srgb")
