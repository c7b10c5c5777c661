"""Loads pictures by libvips: fast, for it decodes no more than the wanted size needs."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NoReturn

import pyvips

from data_plane.decoders.cicp import with_profile
from data_plane.decoders.encoding import scale_down
from data_plane.decoders.gate import refuse_too_large
from data_plane.decoders.loaded import Loaded, Undecodable
from data_plane.decoders.messages import Limits
from data_plane.decoders.sniff import Format
from data_plane.decoders.tiff_samples import plain

# Each by its own loader: libvips shall not choose another one by bytes that a file may fake.
_LOADERS: dict[Format, Callable[..., pyvips.Image]] = {
    Format.JPEG: pyvips.Image.jpegload_buffer,
    Format.PNG: pyvips.Image.pngload_buffer,
    Format.WEBP: pyvips.Image.webpload_buffer,
    Format.GIF: pyvips.Image.gifload_buffer,
    Format.TIFF: pyvips.Image.tiffload_buffer,
    Format.AVIF: pyvips.Image.heifload_buffer,
    Format.SVG: pyvips.Image.svgload_buffer,
    # Most are TIFF files, too, with a small picture in front.
    Format.RAW: pyvips.Image.tiffload_buffer,
}
_TIFFS = frozenset({Format.TIFF, Format.RAW})
# libvips does not trust its loader of SVG; it is called only where a setting allows it.
pyvips.operation_block_set("VipsForeignLoadSvg", False)

# Films often fade in; later frames are not worth decoding all that is before them.
_MAX_FRAMES = 16
# What an animated PNG has before its first frame.
_ANIMATION, _HEAD_BYTES = b"acTL", 1 << 16
# Below it a channel is one colour, with some noise.
_BLANK_DEVIATION = 1.0


def load(
    content: bytes, found: Format, size_px: int, limits: Limits, *, is_tolerant: bool
) -> Loaded:
    """Load a picture, or as much of it as can be decoded if that is tolerated."""
    loader = _LOADERS[found]
    options: dict[str, Any] = {
        "access": "sequential",
        "fail_on": "none" if is_tolerant else "error",
    }
    try:
        header = loader(content, **options)
        refuse_too_large(header.width, header.height, limits)
        options |= _shrinking(found, header, size_px)
        read = partial(loader, content, **options)
        if found in _TIFFS:
            image = scale_down(plain(read, content), size_px)
        else:
            pages = _pages(found, header, limits)
            opened = (with_profile(read(**page), content, found) for page in pages)
            frames = (scale_down(frame, size_px) for frame in opened)
            image = next(frames) if len(pages) == 1 else _first_shown(frames)
    except pyvips.Error as error:
        raise_undecodable(error)
    if found is Format.PNG and _ANIMATION in content[:_HEAD_BYTES] and is_blank(image):
        raise Undecodable("its first frame is blank, and libvips decodes no other")
    return Loaded(image, *upright_size(header))


def upright_size(image: pyvips.Image) -> tuple[int, int]:
    """Return width and height of a picture as it is shown."""
    is_turned = "orientation" in image.get_fields() and image.get("orientation") >= 5
    return (image.height, image.width) if is_turned else (image.width, image.height)


def is_blank(image: pyvips.Image) -> bool:
    """Tell whether nothing is to be seen on a picture."""
    if image.hasalpha() and image[image.bands - 1].max() == 0:
        return True
    return all(band.deviate() < _BLANK_DEVIATION for band in image.bandsplit())


def raise_undecodable(error: pyvips.Error) -> NoReturn:
    """Raise what an error of libvips means."""
    detail = str(error.detail).strip()
    if "out of memory" in detail:
        raise MemoryError from None
    # The last line is the first cause.
    raise Undecodable(detail.splitlines()[-1] if detail else error.message) from None


def _shrinking(found: Format, header: pyvips.Image, size_px: int) -> dict[str, Any]:
    """Return how a loader decodes fewer pixels, and never fewer than are wanted."""
    longer, shorter = max(header.width, header.height), min(header.width, header.height)
    if found is Format.JPEG:
        return {"shrink": next(by for by in (8, 4, 2, 1) if by == 1 or longer >= by * size_px)}
    scale = size_px / longer
    if found in {Format.WEBP, Format.SVG} and scale < 1 <= shorter * scale:
        return {"scale": scale}
    return {}


def _pages(found: Format, header: pyvips.Image, limits: Limits) -> list[dict[str, int]]:
    """Return which frames of a film to look at; of other formats the first page is the picture."""
    if found not in {Format.GIF, Format.WEBP} or "n-pages" not in header.get_fields():
        return [{}]
    count = frames_to_look_at(header.get("n-pages"), header.width * header.height, limits)
    return [{"page": page} for page in range(count)]


def frames_to_look_at(count: int, pixels: int, limits: Limits) -> int:
    """Return how many of a film's frames, of so many pixels each, are worth decoding."""
    return max(1, min(count, limits.max_pixels // pixels, _MAX_FRAMES))


def _first_shown(frames: Iterator[pyvips.Image]) -> pyvips.Image:
    """Return the first frame that shows something, or the first if none does."""
    first = next(frames)
    return next((frame for frame in chain([first], frames) if not is_blank(frame)), first)
