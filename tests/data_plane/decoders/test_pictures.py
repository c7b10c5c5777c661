import hashlib
import os
from io import BytesIO

import blake3
import pytest
from PIL import Image

from data_plane.decoders.messages import DecodeFailed, Failure
from mediaplane.protocol.values import HashAlgorithm
from tests.support.pictures import (
    BLUE,
    JPEG,
    RED,
    WEBP,
    colour_at,
    corners,
    differ_by,
    make,
    picture,
    profile,
    saved,
)


def test_every_output_of_an_order_is_made() -> None:
    content = saved(corners(2000, 1500), "JPEG")

    done, files = make(content, picture(1024), picture(320, WEBP))

    opened = [Image.open(BytesIO(file)) for file in files]
    assert [(one.format, one.size) for one in opened] == [
        ("JPEG", (1024, 768)),
        ("WEBP", (320, 240)),
    ]
    assert [(one.width, one.height, one.bytes_size) for one in done.made] == [
        (1024, 768, len(files[0])),
        (320, 240, len(files[1])),
    ]
    assert (done.width, done.height, done.is_degraded) == (2000, 1500, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ((1, 1), (1, 1)),
        ((319, 200), (319, 200)),
        ((321, 100), (320, 100)),
        ((1, 10_000), (1, 320)),
        ((10_000, 1), (320, 1)),
        ((640, 10), (320, 5)),
    ],
)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP"])
def test_the_longer_side_is_scaled_down_and_nothing_is_enlarged(
    source: tuple[int, int], expected: tuple[int, int], file_format: str
) -> None:
    done, files = make(saved(Image.new("RGB", source, RED), file_format), picture(320, WEBP))

    assert Image.open(BytesIO(files[0])).size == expected
    assert (done.width, done.height) == source


@pytest.mark.parametrize("file_format", [JPEG, WEBP])
def test_nothing_of_the_metadata_is_left(file_format: object) -> None:
    exif = Image.Exif()
    exif[0x0110] = "A camera"
    exif[0x8825] = {1: "N", 2: (52.0, 30.0, 0.0)}
    content = saved(
        corners(),
        "JPEG",
        exif=exif,
        xmp=b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>",
        icc_profile=profile("p3"),
        comment=b"secret",
    )
    assert {"exif", "xmp", "icc_profile", "comment"} <= set(Image.open(BytesIO(content)).info)

    output = picture(200, WEBP if file_format == WEBP else JPEG)
    image = make(content, output).image

    assert {"exif", "xmp", "icc_profile", "comment"} & set(image.info) == set()


@pytest.mark.parametrize(
    ("algorithm", "digest"),
    [
        (HashAlgorithm.BLAKE3, lambda content: blake3.blake3(content).digest()),
        (HashAlgorithm.SHA256, lambda content: hashlib.sha256(content).digest()),
        (None, lambda _: None),
    ],
)
def test_the_content_is_hashed_as_it_is_read(
    algorithm: HashAlgorithm | None, digest: object
) -> None:
    content = saved(Image.frombytes("RGB", (900, 900), os.urandom(900 * 900 * 3)), "BMP")

    done = make(content, hash_algorithm=algorithm).done

    assert callable(digest)
    assert done.digest == digest(content)
    assert done.bytes_read == len(content)


def test_a_file_with_more_bytes_than_the_limit_is_not_read() -> None:
    content = saved(corners(), "PNG")

    with pytest.raises(DecodeFailed) as raised:
        make(content, max_image_bytes=len(content) - 1)

    assert raised.value.failed.code is Failure.TOO_LARGE
    assert f"{len(content)} bytes" in raised.value.failed.message
    assert f"more than {len(content) - 1} are not decoded" in raised.value.failed.message
    assert make(content, max_image_bytes=len(content)).files[0]


@pytest.mark.parametrize("file_format", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_shown_by_its_first_frame_that_is_not_blank(file_format: str) -> None:
    blank = Image.new("RGB", (300, 300), (0, 0, 0))
    shown = blank.copy()
    shown.paste(RED, (0, 0, 150, 300))
    later = blank.copy()
    later.paste(BLUE, (0, 0, 150, 300))
    content = saved(blank, file_format, save_all=True, append_images=[shown, later], duration=50)
    assert getattr(Image.open(BytesIO(content)), "n_frames", 1) == 3

    image = make(content).image

    assert differ_by(colour_at(image.convert("RGB"), 60, 150), RED) <= 12


@pytest.mark.parametrize("file_format", ["GIF", "WEBP", "PNG"])
def test_an_animation_of_blank_frames_is_shown_by_its_first(file_format: str) -> None:
    frames = [Image.new("RGB", (50, 50), colour) for colour in (RED, BLUE, RED)]
    content = saved(frames[0], file_format, save_all=True, append_images=frames[1:], duration=50)

    image = make(content).image

    assert differ_by(colour_at(image.convert("RGB"), 25, 25), RED) <= 12


@pytest.mark.parametrize("damage", [b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_an_animation_whose_later_frames_are_broken_is_shown_by_its_first(damage: bytes) -> None:
    first, *others = [Image.effect_noise((50, 50), deviation) for deviation in (0, 80, 80)]
    content = saved(first, "PNG", save_all=True, append_images=others, duration=50)
    later = content.index(b"fdAT") + 8

    done, _ = result = make(content[:later] + damage * 500)

    assert (done.width, done.height, done.is_degraded) == (50, 50, False)
    assert differ_by(colour_at(result.image, 25, 25), (128,) * 3) <= 12


@pytest.mark.parametrize(("frames", "limit_of_frames"), [(3, 2), (20, 100)])
def test_of_an_animation_few_frames_are_looked_at(frames: int, limit_of_frames: int) -> None:
    black = Image.new("RGB", (300, 300))
    last = black.copy()
    last.paste(RED, (0, 0, 150, 300))
    # Frames that are alike are stored as one.
    blank = [Image.new("RGB", (300, 300), (level % 2,) * 3) for level in range(1, frames - 1)]
    content = saved(black, "PNG", save_all=True, append_images=[*blank, last], duration=50)
    assert getattr(Image.open(BytesIO(content)), "n_frames", 1) == frames

    image = make(content, max_pixels=300 * 300 * limit_of_frames).image

    assert differ_by(colour_at(image, 60, 150), (0, 0, 0)) <= 12


def test_a_tiff_of_several_pages_is_shown_by_the_first() -> None:
    first, second = Image.new("RGB", (300, 200), RED), Image.new("RGB", (200, 300), BLUE)
    content = saved(first, "TIFF", save_all=True, append_images=[second])

    done, _ = result = make(content)

    assert (done.width, done.height) == (300, 200)
    assert differ_by(colour_at(result.image, 100, 100), RED) <= 12


def test_sources_and_outputs_are_left_open_for_whoever_opened_them() -> None:
    before = len(os.listdir("/proc/self/fd"))

    make(saved(corners(), "JPEG"))

    assert len(os.listdir("/proc/self/fd")) == before
