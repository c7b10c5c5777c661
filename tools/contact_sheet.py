"""Shows on one sheet what the decoders make of real pictures and videos, for a person to look at.

    python -m tools.contact_sheet build/contact-sheet.jpg

Every turn of a camera, colour profiles and other formats are shown by one and the same photo, so
that a wrong turn or a wrong colour is seen at a glance.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pillow_heif
import pyvips
from PIL import Image, ImageDraw, ImageOps

from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Order, Output, Product
from data_plane.decoders.pool import Pool
from data_plane.media_types import media_type
from tools.real_media import Unavailable, files

TILE_PX = 240
LABEL_PX = 16
COLUMNS = 8
DEADLINE_SECONDS = 120.0
# How a camera stores an upright photo, by the orientation that it notes.
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
PROFILES = ("srgb", "p3", "cmyk")
FORMATS = ("PNG", "WEBP", "TIFF", "GIF", "AVIF", "HEIF", "JPEG2000", "BMP")
# A photo of each package at most so often.
PICTURES = {
    "kphotoalbum": ("jpg", 3),
    "opencv-doc": ("jpg", 2),
    "gnome-backgrounds": ("webp", 2),
    "libjxl-testdata": ("jxl", 3),
    "rawtran-doc": ("cr2", 1),
}
VIDEOS = {
    "openboard-common": ("mp4", "mov"),
    "hollywood": ("mp4",),
    "fillets-ng-data": ("mpg", "mpeg"),
    "python3-imageio": ("mp4", "mov", "avi"),
    "opencv-doc": ("avi", "mp4"),
}
VIDEOS_PER_PACKAGE = 3


class Exhibit(NamedTuple):
    """A file to show, and what is written below it."""

    label: str
    content: bytes
    name: str


def main() -> int:
    """Make the sheet."""
    if len(sys.argv) != 2:
        print("usage: python -m tools.contact_sheet FILE.jpg", file=sys.stderr)
        return 2
    pillow_heif.register_heif_opener()
    with closing(Pool(1, DecoderSettings())) as pool:
        tiles = [(one.label, _shown(pool, one)) for one in _exhibits()]
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    _sheet(tiles).save(target, quality=90)
    print(f"{target}: {len(tiles)} files")
    return 0


def _exhibits() -> Iterator[Exhibit]:
    photo = _photo()
    yield from _turned(photo)
    yield from _coloured(photo)
    for name in FORMATS:
        yield Exhibit(name, _saved(photo, name), "photo")
    for package, (extension, count) in PICTURES.items():
        yield from _real(package, (extension,), count)
    for package, extensions in VIDEOS.items():
        yield from _real(package, extensions, VIDEOS_PER_PACKAGE)


def _photo() -> Image.Image:
    """Return a real photo, with a mark in its upper left corner."""
    try:
        photo = Image.open(files("kphotoalbum", "jpg", "jpeg")[0]).convert("RGB")
    except (Unavailable, IndexError):
        photo = Image.effect_mandelbrot((800, 600), (-2, -1.2, 0.8, 1.2), 100).convert("RGB")
    photo = ImageOps.fit(photo, (800, 600))
    ImageDraw.Draw(photo).text((20, 20), "top left", "red", font_size=80)
    return photo


def _turned(photo: Image.Image) -> Iterator[Exhibit]:
    for orientation, turn in STORED.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        stored = photo if turn is None else photo.transpose(turn)
        yield Exhibit(f"orientation {orientation}", _saved(stored, "JPEG", exif=exif), "photo.jpg")


def _coloured(photo: Image.Image) -> Iterator[Exhibit]:
    image = pyvips.Image.new_from_array(photo, interpretation="srgb")
    for profile in PROFILES:
        converted = image.icc_transform(profile, input_profile="srgb")
        yield Exhibit(f"profile {profile}", converted.jpegsave_buffer(Q=95), "photo.jpg")


def _saved(photo: Image.Image, file_format: str, **options: object) -> bytes:
    buffer = BytesIO()
    photo.save(buffer, file_format, **options)
    return buffer.getvalue()


def _real(package: str, extensions: tuple[str, ...], count: int) -> Iterator[Exhibit]:
    try:
        found = files(package, *extensions)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return
    # Spread over the package: neighbours look alike.
    for path in found[:: max(1, len(found) // count)][:count]:
        yield Exhibit(f"{package}: {path.name}", path.read_bytes(), path.name)


def _shown(pool: Pool, exhibit: Exhibit) -> Image.Image | str:
    """Return what a decoder makes of a file, or why it does not."""
    name = exhibit.name if "." in exhibit.name else f"{exhibit.name}.png"
    kind = media_type(name.encode())
    if kind is None:
        return "not a picture or video by its name"
    order = Order(
        kind,
        [Output(Product.PICTURE, TILE_PX)],
        extension=name.rpartition(".")[2].lower(),
    )
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as made:
        source.write(exhibit.content)
        source.flush()
        fds = [made.fileno()]
        done = pool.decode(order, source.fileno(), fds, DEADLINE_SECONDS, lambda: None)
        if not isinstance(done, Done):
            return f"{done.code}: {done.message}"
        content = os.pread(made.fileno(), done.made[0].bytes_size, 0)
    return Image.open(BytesIO(content))


def _sheet(tiles: list[tuple[str, Image.Image | str]]) -> Image.Image:
    rows = -(-len(tiles) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * TILE_PX, rows * (TILE_PX + LABEL_PX)), "gray")
    drawing = ImageDraw.Draw(sheet)
    for index, (label, shown) in enumerate(tiles):
        left, top = index % COLUMNS * TILE_PX, index // COLUMNS * (TILE_PX + LABEL_PX)
        if isinstance(shown, str):
            drawing.multiline_text((left + 4, top + 4), _wrapped(shown), "yellow")
        else:
            sheet.paste(
                shown, (left + (TILE_PX - shown.width) // 2, top + (TILE_PX - shown.height) // 2)
            )
        drawing.rectangle((left, top + TILE_PX, left + TILE_PX, top + TILE_PX + LABEL_PX), "black")
        drawing.text((left + 4, top + TILE_PX + 2), label[:38], "white")
    return sheet


def _wrapped(text: str) -> str:
    return "\n".join(text[at : at + 36] for at in range(0, len(text), 36))


if __name__ == "__main__":
    sys.exit(main())
