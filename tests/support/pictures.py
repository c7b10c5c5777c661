"""Orders pictures of the decoder in this process, and opens what it made."""

import os
import struct
from io import BytesIO
from typing import Any, NamedTuple

import pyvips
from PIL import Image

from data_plane.decoders import pictures
from data_plane.decoders.messages import Done, Limits, Order, Output, Product
from mediaplane.protocol.values import HashAlgorithm, MediaType, ThumbnailFormat

JPEG, WEBP = ThumbnailFormat.JPEG, ThumbnailFormat.WEBP

Colour = tuple[int, ...]
RED, GREEN, BLUE, YELLOW = (230, 20, 20), (20, 200, 20), (20, 20, 230), (230, 230, 20)


class Result(NamedTuple):
    """What came of an order, and the files that were made."""

    done: Done
    files: list[bytes]

    @property
    def image(self) -> Image.Image:
        """The first of the pictures."""
        return Image.open(BytesIO(self.files[0]))


def picture(size_px: int, file_format: ThumbnailFormat = JPEG) -> Output:
    """Return a picture to order."""
    return Output(Product.PICTURE, size_px, file_format)


def make(
    content: bytes,
    *outputs: Output,
    extension: str = "",
    hash_algorithm: HashAlgorithm | None = None,
    **limits: Any,
) -> Result:
    """Make pictures of a file with this content; a picture of 320 pixels if nothing is said."""
    outputs = outputs or (picture(320),)
    order = Order(
        MediaType.IMAGE,
        outputs,
        Limits(**limits),
        extension=extension,
        hash_algorithm=hash_algorithm,
    )
    source = _file(content)
    targets = [_file(b"") for _ in outputs]
    try:
        done = pictures.make(order, source, targets)
        return Result(done, [os.pread(fd, 1 << 26, 0) for fd in targets])
    finally:
        for fd in (source, *targets):
            os.close(fd)


def saved(image: Image.Image, file_format: str, **options: Any) -> bytes:
    """Return a picture as a file of a format."""
    buffer = BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def corners(width: int = 400, height: int = 300) -> Image.Image:
    """Return a picture with a colour in each corner: red, green, then blue, yellow below."""
    image = Image.new("RGB", (width, height))
    for index, colour in enumerate((RED, GREEN, BLUE, YELLOW)):
        left, top = index % 2 * width // 2, index // 2 * height // 2
        image.paste(colour, (left, top, left + width // 2 + 1, top + height // 2 + 1))
    return image


def corner_colours(image: Image.Image) -> list[Colour]:
    """Return the colours near the corners, row by row."""
    right, bottom = image.width * 7 // 8, image.height * 7 // 8
    left, top = image.width // 8, image.height // 8
    upright = image.convert("RGB")
    return [colour_at(upright, x, y) for y in (top, bottom) for x in (left, right)]


def colour_at(image: Image.Image, x: int, y: int) -> Colour:
    """Return the colour of a pixel, channel by channel."""
    found = image.getpixel((x, y))
    assert isinstance(found, tuple)
    return tuple(int(level) for level in found)


def differ_by(one: Colour, other: Colour) -> int:
    """Return how many levels two colours are apart, in the worst channel."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def profile(name: str) -> bytes:
    """Return a colour profile that libvips knows by name."""
    black = pyvips.Image.black(1, 1, bands=3).copy(interpretation="srgb").cast("uchar")
    found: bytes = black.icc_transform(name, input_profile="srgb").get("icc-profile-data")
    return found


def linear_grey_profile() -> bytes:
    """Return a profile of grey whose numbers are amounts of light, as small as one can be."""
    white = struct.pack(">3i", *(round(share * 65536) for share in (0.9642, 1.0, 0.8249)))
    tags = {
        b"desc": b"desc\0\0\0\0" + struct.pack(">I", 5) + b"grey".ljust(84, b"\0"),
        b"cprt": b"text\0\0\0\0" + b"none".ljust(8, b"\0"),
        b"wtpt": b"XYZ \0\0\0\0" + white,
        b"kTRC": b"curv\0\0\0\0" + struct.pack(">IHH", 1, 256, 0),
    }
    index, data = struct.pack(">I", len(tags)), b""
    start = 128 + 4 + 12 * len(tags)
    for name, value in tags.items():
        index += name + struct.pack(">II", start + len(data), len(value))
        data += value
    head = struct.pack(">I4sI4s4s4s", start + len(data), b"", 2 << 24, b"mntr", b"GRAY", b"XYZ ")
    head += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + white
    return head.ljust(128, b"\0") + index + data


def _file(content: bytes) -> int:
    fd = os.memfd_create("picture")
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd
