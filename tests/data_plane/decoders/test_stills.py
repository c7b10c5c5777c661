"""A frame is shown as its video says, unless that is absurd."""

from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.videos import FRAMES, make, write_video


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
