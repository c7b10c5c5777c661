"""Brings a TIFF picture to samples that can be shown: colours, transparency, of 16 bits at most."""

from collections.abc import Callable

import pyvips

from data_plane.decoders.loaded import to_16_bits
from data_plane.decoders.tiff_tags import tags

_COLOURS = {
    "b-w": 1,
    "grey16": 1,
    "srgb": 3,
    "rgb16": 3,
    "scrgb": 3,
    "lab": 3,
    "labs": 3,
    "cmyk": 4,
}
_TAG_EXTRA_SAMPLES = 0x0152
_PREMULTIPLIED, _TRANSPARENCY = 1, 2
# What is white in samples of 32 bits.
_WHITE = {"uint": 2**32 - 1, "int": 2**31 - 1}


def plain(read: Callable[[], pyvips.Image], content: bytes) -> pyvips.Image:
    """Return a picture of a file, which is read twice if it does not say what white is."""
    image = _without_spots(read(), content)
    if image.format in _WHITE and image.interpretation in {"b-w", "srgb", "cmyk"}:
        # Programs that know no samples of 16 bits write them like this, too.
        white = 65535 if read().max() <= 65535 else _WHITE[image.format]
        return to_16_bits(image, white)
    if image.format == "float" and image.interpretation in {"b-w", "grey16"}:
        return to_16_bits(image, 1.0)
    return image


def _without_spots(image: pyvips.Image, content: bytes) -> pyvips.Image:
    """Return a picture of a file without the samples that are neither colours nor transparency."""
    colours = _COLOURS.get(image.interpretation, image.bands)
    if image.bands <= colours:
        return image
    # What does not say what it is was written by programs that mean transparency.
    first = dict(tags(content)).get(_TAG_EXTRA_SAMPLES, _TRANSPARENCY)
    # libvips takes the last of all bands for transparency, whatever the file says.
    return image[: colours + (first in (_PREMULTIPLIED, _TRANSPARENCY))]
