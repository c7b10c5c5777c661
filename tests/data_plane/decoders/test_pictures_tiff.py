"""TIFF files have samples of any number, kind and depth; only some of them are colours."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.pictures import Colour, colour_at, differ_by, make
from tests.support.tiff_files import tiff

GREY, RGB, INKS = 1, 2, 5
# Kinds of extra samples.
SPOT, PREMULTIPLIED, TRANSPARENCY = 0, 1, 2
ORANGE = (230, 120, 20)


def even(colour: Colour, dtype: type[np.generic] = np.uint8) -> NDArray[np.generic]:
    """Return an area of one colour, given in eight bits a sample."""
    factor = np.iinfo(dtype).max // 255 if issubclass(dtype, np.integer) else 1
    return np.full((80, 100, len(colour)), [level * factor for level in colour], dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    ("photometric", "colour", "extra", "expected"),
    [
        (RGB, (*ORANGE, 255, 40), [TRANSPARENCY, SPOT], ORANGE),
        (RGB, (*ORANGE, 255, 40, 60), [PREMULTIPLIED, SPOT, SPOT], ORANGE),
        (GREY, (200, 255, 40), [TRANSPARENCY, SPOT], (200,) * 3),
        (INKS, (0, 255, 255, 0, 255, 40), [TRANSPARENCY, SPOT], (232, 0, 0)),
    ],
)
def test_more_samples_than_colours_keep_no_picture_from_being_shown(
    photometric: int,
    colour: Colour,
    extra: Sequence[int],
    expected: Colour,
    dtype: type[np.generic],
) -> None:
    done, _ = result = make(tiff(even(colour, dtype), photometric, extra))

    assert not done.is_degraded
    assert differ_by(colour_at(result.image, 50, 40), expected) <= 12
