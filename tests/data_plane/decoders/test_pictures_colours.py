import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from tests.support.pictures import (
    BLUE,
    GREEN,
    JPEG,
    RED,
    WEBP,
    YELLOW,
    Colour,
    colour_at,
    corner_colours,
    corners,
    differ_by,
    linear_grey_profile,
    make,
    picture,
    profile,
    saved,
)

# What JPEG and WebP lose in an even area.
LOSS = 6
# How a camera stores the upright picture, by the orientation that it then notes.
STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
# From linear Display P3 to linear sRGB; both have the white and the curve of sRGB.
P3_TO_SRGB = np.array(
    [
        [1.2249401, -0.2249404, 0.0],
        [-0.0420569, 1.0420571, 0.0],
        [-0.0196376, -0.0786361, 1.0982735],
    ]
)

BT2020_TO_SRGB = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]]
)
# Numbers of primaries, and of transfers, by CICP.
P3, BT2020, BT709, SRGB = 12, 9, 1, 13


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
def test_a_picture_is_turned_upright(orientation: int, file_format: str) -> None:
    turn = STORED[orientation]
    stored = corners() if turn is None else corners().transpose(turn)
    exif = Image.Exif()
    exif[0x0112] = orientation
    if file_format == "HEIF":
        # Its boxes say how to turn it, and are written only for a picture that was read like that.
        content = saved(Image.open(BytesIO(saved(stored, "PNG", exif=exif))), "HEIF")
    else:
        content = saved(stored, file_format, exif=exif)

    done, _ = result = make(content, picture(200))

    assert (done.width, done.height) == (400, 300)
    assert result.image.size == (200, 150)
    found = corner_colours(result.image)
    for colour, expected in zip(found, (RED, GREEN, BLUE, YELLOW), strict=True):
        assert differ_by(colour, expected) <= 12


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "TIFF", "WEBP", "HEIF", "AVIF"])
@pytest.mark.parametrize("colour", [(200, 100, 50), (40, 160, 90), (128, 128, 128), (90, 60, 200)])
def test_the_colours_of_a_display_p3_photo_are_those_of_srgb(
    colour: Colour, file_format: str
) -> None:
    options = {"quality": 100} | ({"subsampling": 0} if file_format == "JPEG" else {})
    if file_format == "TIFF":
        options = {}
    photo = Image.new("RGB", (400, 300), colour)

    image = make(saved(photo, file_format, icc_profile=profile("p3"), **options)).image

    assert differ_by(colour_at(image, 100, 100), srgb_of_p3(colour)) <= LOSS
    if colour != (128, 128, 128):
        # A decoder that does not look at the profile would fail.
        assert differ_by(colour, srgb_of_p3(colour)) > LOSS


@pytest.mark.parametrize("file_format", ["PNG", "HEIF", "AVIF"])
@pytest.mark.parametrize("transfer", [SRGB, BT709])
@pytest.mark.parametrize(
    ("primaries", "to_srgb"), [(P3, P3_TO_SRGB), (BT2020, BT2020_TO_SRGB), (BT709, np.eye(3))]
)
@pytest.mark.parametrize("colour", [(200, 100, 50), (120, 160, 130)])
def test_colours_that_are_given_by_number_are_those_of_srgb(
    colour: Colour,
    primaries: int,
    to_srgb: NDArray[np.float64],
    transfer: int,
    file_format: str,
) -> None:
    content = numbered(Image.new("RGB", (400, 300), colour), file_format, primaries, transfer)

    image = make(content).image

    assert differ_by(colour_at(image, 100, 100), in_srgb(colour, to_srgb)) <= LOSS


@pytest.mark.parametrize("file_format", ["PNG", "AVIF"])
def test_a_profile_counts_for_more_than_a_number(file_format: str) -> None:
    photo = Image.new("RGB", (400, 300), (200, 100, 50))
    content = numbered(photo, file_format, BT2020, SRGB, icc_profile=profile("p3"))

    image = make(content).image

    assert differ_by(colour_at(image, 100, 100), srgb_of_p3((200, 100, 50))) <= LOSS


def test_a_photo_with_the_profile_of_srgb_keeps_its_colours() -> None:
    photo = saved(
        corners(),
        "PNG",
        icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    )

    found = corner_colours(make(photo, picture(1000)).image)

    for colour, expected in zip(found, (RED, GREEN, BLUE, YELLOW), strict=True):
        assert differ_by(colour, expected) <= LOSS


def test_outputs_of_all_sizes_have_the_same_colours() -> None:
    photo = Image.new("RGB", (1500, 1000), (200, 100, 50))
    content = saved(photo, "JPEG", icc_profile=profile("p3"), quality=95)

    _, files = make(content, picture(1024), picture(320, WEBP), picture(100))

    for file in files:
        opened = Image.open(BytesIO(file)).convert("RGB")
        assert differ_by(colour_at(opened, 30, 30), srgb_of_p3((200, 100, 50))) <= LOSS


@pytest.mark.parametrize(
    ("inks", "expected"),
    [
        ((0, 0, 0, 0), (255, 255, 255)),
        ((0, 0, 0, 255), (20, 5, 0)),
        ((255, 0, 0, 0), (0, 153, 227)),
        ((0, 255, 255, 0), (232, 0, 0)),
    ],
)
@pytest.mark.parametrize("file_format", ["JPEG", "TIFF"])
def test_inks_become_the_colours_of_a_screen(
    inks: Colour, expected: Colour, file_format: str
) -> None:
    image = make(saved(Image.new("CMYK", (200, 200), inks), file_format)).image

    assert image.mode == "RGB"
    assert differ_by(colour_at(image, 100, 100), expected) <= 12


@pytest.mark.parametrize("level", [0, 77, 255])
@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "JPEG2000", "PPM"])
def test_grey_of_16_bits_keeps_its_brightness(level: int, file_format: str) -> None:
    pixels = np.full((100, 120), level * 257, np.uint16)

    image = make(saved(Image.fromarray(pixels), file_format)).image

    assert image.mode == "RGB"
    assert differ_by(colour_at(image, 50, 50), (level,) * 3) <= LOSS


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("file_format", ["PNG", "TIFF"])
def test_grey_is_shown_as_its_profile_says(
    file_format: str, dtype: type[np.unsignedinteger]
) -> None:
    a_fifth = np.full((100, 120), round(np.iinfo(dtype).max / 5), dtype)
    content = saved(Image.fromarray(a_fifth), file_format, icc_profile=linear_grey_profile())

    image = make(content).image

    # A fifth of the light of white.
    assert differ_by(colour_at(image, 50, 50), (124,) * 3) <= LOSS


@pytest.mark.parametrize(("dtype", "expected"), [(np.uint8, 51), (np.uint16, 124)])
def test_grey_of_jpeg_xl_is_shown_as_its_profile_says(
    dtype: type[np.unsignedinteger], expected: int
) -> None:
    # The encoder says of 8 bits that they are sRGB, and of 16 that they are linear.
    a_fifth = np.full((100, 120), round(np.iinfo(dtype).max / 5), dtype)

    image = make(saved(Image.fromarray(a_fifth), "JXL", lossless=True)).image

    assert differ_by(colour_at(image, 50, 50), (expected,) * 3) <= LOSS


def test_grey_with_a_profile_of_colours_is_shown_without_it() -> None:
    grey = np.full((100, 120), 200 * 257, np.uint16)
    content = saved(Image.fromarray(grey), "PNG", icc_profile=profile("p3"))

    image = make(content).image

    assert differ_by(colour_at(image, 50, 50), (200,) * 3) <= LOSS


@pytest.mark.parametrize("mode", ["L", "1", "LA", "P", "RGBA", "I;16"])
def test_pictures_of_all_modes_become_rgb(mode: str) -> None:
    bright = Image.new("L", (100, 100), 255).convert("I;16" if mode == "I;16" else "L")
    image = Image.new("I;16", (100, 100), 65535) if mode == "I;16" else bright.convert(mode)

    made = make(saved(image, "PNG")).image

    assert made.mode == "RGB"
    assert colour_at(made, 50, 50) == (255, 255, 255)


def test_webp_keeps_what_is_transparent() -> None:
    image = make(saved(half_transparent(), "PNG"), picture(200, WEBP)).image

    assert image.mode == "RGBA"
    assert colour_at(image, 20, 50)[3] == 0
    assert differ_by(colour_at(image, 80, 50), (*RED, 255)) <= LOSS


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "TIFF", "GIF", "TGA", "AVIF", "JXL"])
def test_jpeg_shows_white_where_it_is_transparent(file_format: str) -> None:
    options = {"lossless": True} if file_format in {"WEBP", "JXL"} else {}
    content = saved(half_transparent(), file_format, **options)

    image = make(content, picture(200, JPEG), extension=file_format.lower()).image

    assert differ_by(colour_at(image, 20, 50), (255, 255, 255)) <= LOSS
    assert differ_by(colour_at(image, 80, 50), RED) <= 12


def test_a_palette_with_transparency_keeps_both() -> None:
    palette = half_transparent().quantize(8)
    assert palette.mode == "P"

    image = make(saved(palette, "PNG"), picture(200, WEBP)).image

    assert colour_at(image, 20, 50)[3] == 0
    assert differ_by(colour_at(image, 80, 50), (*RED, 255)) <= 12


def half_transparent() -> Image.Image:
    image = Image.new("RGBA", (100, 100), (0, 0, 0, 0))
    image.paste((*RED, 255), (50, 0, 100, 100))
    return image


def srgb_of_p3(colour: Colour) -> Colour:
    """Return what a colour of Display P3 is in sRGB, by the formulas of both."""
    return in_srgb(colour, P3_TO_SRGB)


def in_srgb(colour: Colour, to_srgb: NDArray[np.float64]) -> Colour:
    """Return what a colour is in sRGB, given how light is to be mixed for that."""
    level = np.array(colour) / 255
    light = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    light = np.clip(to_srgb @ light, 0, 1)
    level = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    return tuple(round(one) for one in (level * 255).tolist())


def numbered(
    image: Image.Image, file_format: str, primaries: int, transfer: int, **options: object
) -> bytes:
    """Return a file that gives its colours by numbers."""
    if file_format != "PNG":
        content = saved(image, file_format, quality=100, **options)
        # A box of its own, beside that of a profile.
        head, name, rest = content.partition(b"colrnclx")
        assert name
        return head + name + struct.pack(">HH", primaries, transfer) + rest[4:]
    content = saved(image, file_format, **options)
    chunk = b"cICP" + bytes([primaries, transfer, 0, 1])
    after_header = 8 + 8 + 13 + 4
    chunk = struct.pack(">I", 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return content[:after_header] + chunk + content[after_header:]
