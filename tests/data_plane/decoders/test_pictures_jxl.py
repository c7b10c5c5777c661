"""What is shown of JPEG XL pictures that were cut off."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data_plane.decoders import jxl_loader, pillow_loader
from data_plane.decoders.loaded import Undecodable
from data_plane.decoders.messages import DecodeFailed, Failure, Limits
from data_plane.decoders.sniff import Format
from tests.support.jxl_files import jxl
from tests.support.pictures import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    corner_colours,
    corners,
    differ_by,
    make,
    picture,
    saved,
)

WIDTH, HEIGHT = 1200, 900

pytestmark = pytest.mark.skipif(
    jxl_loader.LIBRARY is None, reason="libjxl comes for Linux on x86_64 only"
)


def noisy_corners() -> Image.Image:
    """A picture of some hundred thousand bytes, in which its parts can be told apart."""
    noise = Image.effect_noise((WIDTH, HEIGHT), 60).convert("RGB")
    return Image.blend(corners(WIDTH, HEIGHT), noise, 0.1)


def cut_off(content: bytes, share: float) -> bytes:
    return content[: int(len(content) * share)]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("is_progressive", [False, True])
@pytest.mark.parametrize("is_lossless", [False, True])
def test_a_jpeg_xl_picture_that_was_cut_off_is_shown_as_far_as_it_goes(
    is_lossless: bool, is_progressive: bool, share: float
) -> None:
    content = jxl(noisy_corners(), is_lossless=is_lossless, is_progressive=is_progressive)

    done, _ = result = make(cut_off(content, share))

    assert done.is_degraded
    assert (done.width, done.height) == (WIDTH, HEIGHT)
    expected = make(content).image
    # Without passes and without loss there is no coarse picture of what is missing.
    count = 1 if is_lossless and not is_progressive else 4
    found = corner_colours(result.image)[:count]
    for colour, whole in zip(found, corner_colours(expected)[:count], strict=True):
        assert differ_by(colour, whole) <= 40


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_what_is_missing_of_a_jpeg_xl_picture_shows_nothing_of_other_pictures(mode: str) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, len(mode)), np.uint8)
    noise[..., 3:] = 255
    other, content = (
        jxl(Image.fromarray(pixels), is_lossless=True) for pixels in (noise | 128, noise)
    )
    # A decoder that leaves memory as it is shows what was in it: bright pixels, say.
    for share in (1.0, 0.9, 1.0):
        jxl_loader.load(cut_off(other, share), Format.JXL, 320, Limits(), is_tolerant=True)

    half = jxl_loader.load(cut_off(content, 0.5), Format.JXL, 320, Limits(), is_tolerant=True)

    shown = np.asarray(half.image)
    assert shown[: HEIGHT // 16].max() > 100
    assert shown[half.image.height * 7 // 8 :].max() == 0


def test_a_jpeg_xl_picture_that_was_cut_off_is_shown_upright() -> None:
    content = jxl(noisy_corners(), is_progressive=True, has_container=True, orientation=6)

    done, _ = result = make(cut_off(content, 0.7), picture(320))

    assert (done.width, done.height, done.is_degraded) == (HEIGHT, WIDTH, True)
    for colour, expected in zip(
        corner_colours(result.image), (BLUE, RED, YELLOW, GREEN), strict=True
    ):
        assert differ_by(colour, expected) <= 40


def test_a_jpeg_xl_picture_that_was_a_jpeg_is_shown_upright_when_it_was_cut_off(
    tmp_path: Path,
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    noisy_corners().save(tmp_path / "turned.jpg", quality=90, exif=exif)
    with Image.open(tmp_path / "turned.jpg") as opened:
        content = saved(opened, "JXL", lossless_jpeg=True)
    assert b"jbrd" in content

    done, _ = result = make(cut_off(content, 0.7))

    assert (done.width, done.height, done.is_degraded) == (HEIGHT, WIDTH, True)
    assert differ_by(corner_colours(result.image)[1], RED) <= 40


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA"])
def test_libjxl_itself_draws_a_whole_picture_as_pillow_does(mode: str) -> None:
    content = saved(corners(600, 450).convert(mode), "JXL", lossless=True, effort=1)

    drawn, expected = (
        loader.load(content, Format.JXL, 300, Limits(), is_tolerant=False)
        for loader in (jxl_loader, pillow_loader)
    )

    assert (drawn.width, drawn.height) == (expected.width, expected.height) == (600, 450)
    assert drawn.image.bands == expected.image.bands
    assert (drawn.image - expected.image).abs().max() <= 1


def test_libjxl_refuses_a_picture_of_too_many_pixels_by_its_header() -> None:
    limits = Limits(max_pixels=WIDTH * HEIGHT - 1)
    content = jxl(noisy_corners())[:2000]

    with pytest.raises(DecodeFailed) as raised:
        jxl_loader.load(content, Format.JXL, 320, limits, is_tolerant=True)

    assert raised.value.failed.code is Failure.TOO_LARGE


@pytest.mark.parametrize("length", [2, 12, 40, 500, 2000])
def test_libjxl_says_so_if_too_little_is_there(length: int) -> None:
    content = jxl(noisy_corners())[:length]

    with pytest.raises(Undecodable):
        jxl_loader.load(content, Format.JXL, 320, Limits(), is_tolerant=True)
