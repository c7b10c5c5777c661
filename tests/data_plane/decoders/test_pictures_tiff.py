"""TIFF files have samples of any number, kind and depth; only some of them are colours."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from data_plane.decoders.tiff_tags import tags
from tests.support.pictures import WEBP, Colour, colour_at, differ_by, make, picture, saved
from tests.support.tiff_files import Order, tiff

# What JPEG loses in a slope.
LOSS = 6
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
        (RGB, (*ORANGE, 40, 60), [SPOT, SPOT], ORANGE),
        (RGB, (*ORANGE, 0, 0, 0), [SPOT, SPOT, SPOT], ORANGE),
        (GREY, (200, 90, 40), [SPOT, SPOT], (200,) * 3),
        (GREY, (200, 255, 40), [TRANSPARENCY, SPOT], (200,) * 3),
        (INKS, (0, 255, 255, 0, 255, 40), [TRANSPARENCY, SPOT], (232, 0, 0)),
        (INKS, (0, 255, 255, 0, 40, 40), [SPOT, SPOT], (232, 0, 0)),
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


# Where a number is and which of its bytes count depends on these.
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("spots", [1, 2, 3])
def test_a_spot_colour_makes_nothing_transparent(order: Order, spots: int) -> None:
    content = tiff(even((*ORANGE, *[0] * spots)), RGB, [SPOT] * spots, order)

    image = make(content, picture(100, WEBP)).image

    assert image.mode == "RGB"
    assert differ_by(colour_at(image, 50, 40), ORANGE) <= 12


def test_a_spot_colour_of_a_big_tiff_makes_nothing_transparent() -> None:
    content = saved(Image.new("RGBX", (100, 80), (*ORANGE, 0)), "TIFF", big_tiff=True)
    assert content[:4] == b"II+\0"

    image = make(content, picture(100, WEBP)).image

    assert image.mode == "RGB"


@pytest.mark.parametrize("extra", [[PREMULTIPLIED], [TRANSPARENCY], [TRANSPARENCY, SPOT], []])
@pytest.mark.parametrize("order", ["<", ">"])
def test_transparency_of_a_tiff_is_kept(order: Order, extra: Sequence[int]) -> None:
    clear = even((0, 0, 0, 0, *[77] * (len(extra) - 1)))

    image = make(tiff(clear, RGB, extra, order), picture(100, WEBP)).image

    assert image.mode == "RGBA"
    assert colour_at(image, 50, 40)[3] == 0


@pytest.mark.parametrize(("photometric", "samples"), [(GREY, 1), (RGB, 3)])
@pytest.mark.parametrize(
    ("dtype", "white"),
    [
        (np.uint32, 2**32 - 1),
        (np.int32, 2**31 - 1),
        # As programs write what has 16 bits.
        (np.uint32, 65535),
        (np.int32, 65535),
    ],
)
def test_samples_of_32_bits_keep_their_brightness(
    dtype: type[np.generic], white: int, photometric: int, samples: int
) -> None:
    levels = np.linspace(0, white, 256).astype(dtype)
    ramp = np.broadcast_to(levels[np.newaxis, :, np.newaxis], (20, 256, samples))

    image = make(tiff(ramp, photometric)).image.convert("RGB")

    for level in (5, 77, 128, 200, 250):
        assert differ_by(colour_at(image, level, 10), (level,) * 3) <= LOSS


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("extra", [(), (SPOT,), (TRANSPARENCY,)])
def test_grey_of_fractions_keeps_its_brightness(
    dtype: type[np.generic], extra: Sequence[int]
) -> None:
    ramp = np.linspace(0, 1, 256)[np.newaxis, :, np.newaxis]
    pixels = np.concatenate([ramp, *[np.ones_like(ramp)] * len(extra)], axis=2)
    content = tiff(np.repeat(pixels, 20, axis=0).astype(dtype), GREY, extra)

    image = make(content).image

    for level in (5, 77, 128, 200, 250):
        assert differ_by(colour_at(image, level, 10), (level,) * 3) <= LOSS


def test_fractions_beyond_black_and_white_are_black_and_white() -> None:
    pixels = np.full((20, 90, 1), -7.5, np.float32)
    pixels[:, 30:60], pixels[:, 60:] = np.inf, np.nan

    image = make(tiff(pixels, GREY)).image

    assert [colour_at(image, at, 10) for at in (15, 45)] == [(0,) * 3, (255,) * 3]


@settings(deadline=None)
@given(
    magic=st.sampled_from([b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]),
    # The first entry of a directory lies where such small numbers say.
    rest=st.lists(st.sampled_from([0, 1, 2, 3, 8, 16, 0x0152, 0xFFFF])),
    order=st.sampled_from("<>"),
)
def test_tags_of_any_bytes_are_numbers(magic: bytes, rest: list[int], order: str) -> None:
    for tag, number in tags(magic + struct.pack(f"{order}{len(rest)}H", *rest)):
        assert 0 <= tag < 1 << 16
        assert 0 <= number < 1 << 32


@pytest.mark.parametrize("place", [1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1])
def test_a_tag_that_points_nowhere_is_no_number(place: int) -> None:
    big = struct.pack("<4sHHQQ HHQQ", b"II+\0", 8, 0, 16, 1, 0x0152, 3, 5, place)

    assert dict(tags(big)) == {0x0152: 0}
