"""Leaves those samples of a TIFF picture that can be shown: its colours and its transparency."""

import pyvips

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


def without_spots(image: pyvips.Image, content: bytes) -> pyvips.Image:
    """Return a picture of a file without the samples that are neither colours nor transparency."""
    colours = _COLOURS.get(image.interpretation, image.bands)
    if image.bands <= colours:
        return image
    # What does not say what it is was written by programs that mean transparency.
    first = dict(tags(content)).get(_TAG_EXTRA_SAMPLES, _TRANSPARENCY)
    # libvips takes the last of all bands for transparency, whatever the file says.
    return image[: colours + (first in (_PREMULTIPLIED, _TRANSPARENCY))]
