"""What a loader of pictures gives back, and what it raises if it cannot."""

from dataclasses import dataclass

import pyvips


@dataclass(frozen=True)
class Loaded:
    """A picture in memory: upright, in sRGB, and no larger than was asked for."""

    image: pyvips.Image
    # Of the source, turned upright.
    width: int
    height: int


def in_memory(
    pixels: bytes | bytearray, width: int, height: int, mode: str, profile: bytes | None
) -> pyvips.Image:
    """Return a picture by its pixels, a byte for each letter of its mode, which is Pillow's."""
    interpretation = {"L": "b-w", "LA": "b-w", "CMYK": "cmyk"}.get(mode, "srgb")
    image = pyvips.Image.new_from_memory(pixels, width, height, len(mode), "uchar").copy(
        interpretation=interpretation
    )
    if profile:
        attach_profile(image, profile)
    return image


def attach_profile(image: pyvips.Image, profile: bytes) -> None:
    """Say what the colours of a picture mean."""
    image.set_type(pyvips.GValue.blob_type, "icc-profile-data", profile)


def to_16_bits(deep: pyvips.Image, white: float) -> pyvips.Image:
    """Return a picture of samples that are deeper, by the number that is white."""
    # A cast cuts off what is beyond black and white. It keeps all bits: where a profile is linear,
    # eight would show steps in the shadows.
    levels = (deep * (65535.0 / white)).cast("ushort")
    named = {"b-w": "grey16", "srgb": "rgb16"}
    return levels.copy(interpretation=named.get(deep.interpretation, deep.interpretation))


class Undecodable(Exception):
    """This loader cannot decode this picture; another one may."""
