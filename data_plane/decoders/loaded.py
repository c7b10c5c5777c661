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


class Undecodable(Exception):
    """This loader cannot decode this picture; another one may."""
