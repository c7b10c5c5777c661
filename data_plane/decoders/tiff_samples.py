"""Leaves those samples of a TIFF picture that can be shown: its colours and its transparency."""

import pyvips

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


def without_spots(image: pyvips.Image) -> pyvips.Image:
    """Return a picture without the samples that follow its colours and its transparency."""
    colours = _COLOURS.get(image.interpretation, image.bands)
    # libvips takes the last band of many for transparency; it is the first after the colours.
    return image if image.bands <= colours + 1 else image[: colours + 1]
