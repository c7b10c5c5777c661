import re
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data_plane.decoders import vips_loader
from data_plane.decoders.jxl_header import jxl_size
from data_plane.decoders.lengths import fill_up, length_of
from data_plane.decoders.loaded import Undecodable
from data_plane.decoders.messages import DecodeFailed, Failed, Failure, Limits
from data_plane.decoders.sniff import Format, sniff
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
from tests.support.raw_files import dng

WIDTH, HEIGHT = 400, 300


def psd(image: Image.Image, *, version: int = 1, bits: int = 8) -> bytes:
    size = image.height, image.width
    header = struct.pack(">4sH6xHIIHH", b"8BPS", version, 3, *size, bits, 3)
    # No palette, resources, layers nor compression; one channel after the other.
    return header + bytes(14) + b"".join(band.tobytes() for band in image.split())


def svg(width: int, height: int) -> bytes:
    colours = (RED, GREEN, BLUE, YELLOW)
    parts = "".join(
        f'<rect x="{index % 2 * width / 2}" y="{index // 2 * height / 2}" width="{width / 2}"'
        f' height="{height / 2}" fill="rgb{colour}"/>'
        for index, colour in enumerate(colours)
    )
    return (
        f'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{width}"'
        f' height="{height}">{parts}</svg>'
    ).encode()


def writer(file_format: str, **options: object) -> Callable[[], bytes]:
    return lambda: saved(corners(WIDTH, HEIGHT), file_format, **options)


FORMATS: dict[str, Callable[[], bytes]] = {
    "jpg": writer("JPEG"),
    "png": writer("PNG"),
    "webp": writer("WEBP"),
    "gif": writer("GIF"),
    "tif": writer("TIFF"),
    "avif": writer("AVIF"),
    "heic": writer("HEIF"),
    "jxl": writer("JXL"),
    "jp2": writer("JPEG2000"),
    "bmp": writer("BMP"),
    "tga": writer("TGA", compression="tga_rle"),
    "ppm": writer("PPM"),
    "psd": lambda: psd(corners(WIDTH, HEIGHT)),
    "svg": lambda: svg(WIDTH, HEIGHT),
    "dng": lambda: dng(WIDTH, HEIGHT, preview=writer("JPEG")()),
}


def refusal(content: bytes, **limits: Any) -> Failed:
    with pytest.raises(DecodeFailed) as raised:
        make(content, **limits)
    return raised.value.failed


@pytest.mark.parametrize("extension", FORMATS)
def test_a_picture_of_every_format_is_decoded(extension: str) -> None:
    done, _ = result = make(
        FORMATS[extension](), picture(200), extension=extension, allows_svg=True
    )

    assert (done.width, done.height, done.is_degraded) == (WIDTH, HEIGHT, False)
    assert result.image.size == (200, 150)
    found = corner_colours(result.image)
    for colour, expected in zip(found, (RED, GREEN, BLUE, YELLOW), strict=True):
        assert differ_by(colour, expected) <= 16


@pytest.mark.parametrize("extension", sorted({*FORMATS} - {"tga"}))
def test_the_name_of_a_file_does_not_matter(extension: str) -> None:
    done = make(FORMATS[extension](), extension="mp3", allows_svg=True).done

    assert (done.width, done.height) == (WIDTH, HEIGHT)


@pytest.mark.parametrize("extension", FORMATS)
def test_more_pixels_than_the_limit_are_refused(extension: str) -> None:
    content = FORMATS[extension]()

    with pytest.raises(DecodeFailed) as raised:
        make(content, extension=extension, allows_svg=True, max_pixels=WIDTH * HEIGHT - 1)

    assert raised.value.failed.code is Failure.TOO_LARGE
    assert f"{WIDTH} x {HEIGHT}" in raised.value.failed.message
    assert "MEDIAPLANE_MAX_PIXELS" in raised.value.failed.message
    assert make(content, extension=extension, allows_svg=True, max_pixels=WIDTH * HEIGHT).files


def png_claiming(width: int, height: int) -> bytes:
    content = b"\x89PNG\r\n\x1a\n"
    rows = zlib.compress(bytes(100_000))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    for name, data in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")):
        checksum = zlib.crc32(name + data)
        content += struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)
    return content


def gif_claiming(width: int, height: int) -> bytes:
    content = writer("GIF")()
    size = struct.pack("<HH", width, height)
    assert content[25:26] == b","  # of the only frame
    return content[:6] + size + content[10:30] + size + content[34:]


def bmp_claiming(width: int, height: int) -> bytes:
    content = writer("BMP")()
    return content[:18] + struct.pack("<ii", width, height) + content[26:]


def psd_claiming(width: int, height: int) -> bytes:
    content = FORMATS["psd"]()
    return content[:14] + struct.pack(">II", height, width) + content[22:]


def jxl_claiming(width: int, height: int) -> bytes:
    # Both in 30 bits, with no ratio between them.
    bits = 0 | 3 << 1 | (height - 1) << 3 | 0 << 33 | 3 << 36 | (width - 1) << 38
    return b"\xff\x0a" + bits.to_bytes(9, "little") + bytes(100)


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png_claiming(50_000, 50_000), "50000 x 50000"),
        (png_claiming(1, 15_600_000), "1 x 15600000"),
        (gif_claiming(65_535, 65_535), "65535 x 65535"),
        (bmp_claiming(17_000, 17_000), "17000 x 17000"),
        (psd_claiming(20_000, 20_000), "20000 x 20000"),
        (jxl_claiming(1 << 29, 1 << 29), f"{1 << 29} x {1 << 29}"),
        (svg(100_000, 100_000), "100000 x 100000"),
    ],
    ids=["png", "rows", "gif", "bmp", "psd", "jxl", "svg"],
)
def test_a_small_file_that_claims_to_be_huge_is_refused_by_its_header(
    content: bytes, size: str
) -> None:
    failed = refusal(content, allows_svg=True)

    assert failed.code is Failure.TOO_LARGE
    assert size in failed.message


def test_a_file_that_claims_far_more_than_the_limit_is_refused_by_pillow_too() -> None:
    failed = refusal(bmp_claiming(60_000, 60_000))

    assert failed.code is Failure.TOO_LARGE
    assert "268435456" in failed.message
    assert "MEDIAPLANE_MAX_PIXELS" in failed.message


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (256, 256), (400, 300), (1600, 900), (3000, 20)])
@pytest.mark.parametrize("use_container", [False, True])
def test_the_size_of_a_jpeg_xl_picture_is_read_from_its_header(
    size: tuple[int, int], use_container: bool
) -> None:
    content = saved(Image.new("RGB", size), "JXL", effort=1, use_container=use_container)

    assert jxl_size(content) == size


@pytest.mark.parametrize(
    "extension", ["jpg", "png", "gif", "tif", "ppm", "webp", "avif", "heic", "jp2", "j2k"]
)
def test_a_truncated_picture_is_shown_as_far_as_it_goes(extension: str) -> None:
    noise = Image.effect_noise((WIDTH, HEIGHT), 80).convert("RGB")
    noise.paste(RED, (0, 0, WIDTH, HEIGHT // 4))
    names = {"jpg": "JPEG", "tif": "TIFF", "heic": "HEIF", "jp2": "JPEG2000", "j2k": "JPEG2000"}
    options: dict[str, object] = {"interlace": 0} if extension == "gif" else {}
    if extension == "j2k":
        options["no_jp2"] = True
    content = saved(noise, names.get(extension, extension.upper()), **options)

    done, _ = result = make(content[: len(content) * 2 // 3])

    assert done.is_degraded
    assert (done.width, done.height) == (WIDTH, HEIGHT)
    assert differ_by(corner_colours(result.image)[0], RED) <= 40


@pytest.mark.parametrize("extension", ["webp", "avif", "heic", "jp2", "jxl"])
def test_a_picture_of_which_nothing_is_left_is_said_to_be_cut_off(extension: str) -> None:
    options = {"use_container": True} if extension == "jxl" else {}
    names = {"heic": "HEIF", "jp2": "JPEG2000"}
    noise = Image.effect_noise((WIDTH, HEIGHT), 80).convert("RGB")
    content = saved(noise, names.get(extension, extension.upper()), **options)
    there = len(content) // 50

    failed = refusal(content[:there])

    assert failed.code is Failure.BROKEN
    assert f"it is cut off after {there} of {len(content)} bytes" in failed.message


@pytest.mark.parametrize("extension", FORMATS)
def test_an_intact_picture_says_that_it_has_the_bytes_that_it_has(extension: str) -> None:
    content = FORMATS[extension]()

    assert length_of(content, sniff(content, extension) or Format.RAW) == len(content)


def test_a_picture_that_claims_more_bytes_than_are_allowed_is_not_filled_up() -> None:
    content = bytearray(FORMATS["webp"]())
    content[4:8] = b"\xff\xff\xff\x7f"

    assert fill_up(bytes(content), Format.WEBP, max_bytes=1 << 20) == content


def test_missing_rows_show_nothing_of_other_pictures() -> None:
    # A decoder that leaves memory as it is shows what was in it: bright red, say.
    for _ in range(3):
        make(saved(Image.new("RGB", (1200, 600), (255, 0, 0)), "PNG"))
    noise = Image.effect_noise((1200, 600), 80).convert("RGB")
    content = saved(noise, "PNG")

    image = make(content[: len(content) // 3]).image

    assert np.asarray(image)[image.height * 2 // 3 :].max() <= 8


@pytest.mark.parametrize("extension", sorted({*FORMATS} - {"tga", "svg", "dng", "psd"}))
def test_a_file_that_ends_after_its_header_is_broken(extension: str) -> None:
    failed = refusal(FORMATS[extension]()[:40])

    assert failed.code is Failure.BROKEN
    assert failed.message.startswith("This ")
    assert re.search(r"/|0x[0-9a-f]", failed.message) is None


@pytest.mark.parametrize(
    "content",
    [b"x", b"%PDF-1.7\n", b"\0" * 5000, b"ID3\x04", b"<?xml version='1.0'?><html/>", b"BMW"],
)
def test_what_is_no_picture_is_unsupported(content: bytes) -> None:
    assert refusal(content).code is Failure.UNSUPPORTED


def test_a_file_of_no_bytes_is_said_to_be_empty() -> None:
    failed = refusal(b"")

    assert failed.code is Failure.BROKEN
    assert failed.message.startswith("It is empty:")


@pytest.mark.parametrize(
    ("version", "bits", "what"), [(1, 16, "16 bits"), (1, 32, "32 bits"), (2, 8, "PSB")]
)
def test_a_photoshop_file_of_a_kind_that_is_not_decoded_is_not_called_broken(
    version: int, bits: int, what: str
) -> None:
    failed = refusal(psd(corners(), version=version, bits=bits))

    assert failed.code is Failure.UNSUPPORTED
    assert what in failed.message
    assert "TIFF" in failed.message


def test_svg_is_decoded_only_where_it_is_allowed() -> None:
    failed = refusal(svg(100, 100))

    assert failed.code is Failure.UNSUPPORTED
    assert "MEDIAPLANE_ALLOW_SVG" in failed.message
    assert make(svg(100, 100), allows_svg=True).image.size == (100, 100)


def test_svg_cannot_show_other_files(tmp_path: object) -> None:
    secret = f"{tmp_path}/secret.png"
    Image.new("RGB", (100, 100), RED).save(secret)
    content = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">'
        f'<image href="file://{secret}" width="100" height="100"/></svg>'
    ).encode()

    image = make(content, allows_svg=True).image

    assert image.convert("RGB").getcolors() == [(100 * 100, (255, 255, 255))]


def test_a_file_that_vips_cannot_read_is_decoded_by_pillow() -> None:
    content = saved(corners(), "TIFF", compression="zstd")
    with pytest.raises(Undecodable):
        vips_loader.load(content, Format.TIFF, 320, Limits(), is_tolerant=False)

    done, _ = result = make(content)

    assert not done.is_degraded
    assert differ_by(corner_colours(result.image)[0], RED) <= 12


def test_a_raw_picture_is_shown_by_its_preview() -> None:
    content = dng(800, 600, preview=saved(corners(800, 600), "JPEG"))

    image = make(content, picture(320)).image

    for colour, expected in zip(corner_colours(image), (RED, GREEN, BLUE, YELLOW), strict=True):
        assert differ_by(colour, expected) <= 12


@pytest.mark.parametrize("preview", [b"", saved(corners(160, 120), "JPEG"), b"\xff\xd8\xff broken"])
def test_a_raw_picture_is_developed_if_its_preview_is_missing_small_or_broken(
    preview: bytes,
) -> None:
    image = make(dng(800, 600, preview=preview), picture(320)).image

    assert image.size == (320, 240)
    top_left, _, bottom_left, _ = corner_colours(image)
    assert top_left[0] - top_left[2] > 150
    assert bottom_left[2] - bottom_left[0] > 150


@pytest.mark.parametrize("has_preview", [True, False])
def test_a_raw_picture_is_turned_upright(has_preview: bool) -> None:
    preview = saved(corners(800, 600), "JPEG") if has_preview else b""

    done, _ = result = make(dng(800, 600, orientation=6, preview=preview), picture(320))

    assert (done.width, done.height) == (600, 800)
    assert result.image.size == (240, 320)
    top_left, top_right, *_ = corner_colours(result.image)
    assert differ_by(top_right, RED) <= 40
    assert top_left[2] - top_left[0] > 150


def test_pictures_are_not_progressive() -> None:
    assert "progressive" not in Image.open(BytesIO(make(FORMATS["jpg"]()).files[0])).info
