"""Brings a picture to the size and the colours of an output, and encodes it."""

import os

import pyvips

from data_plane.decoders.messages import Made, Output
from mediaplane.protocol.values import ThumbnailFormat

QUALITY = 80
WEBP_EFFORT = 4

# One decoder runs per core, and no picture is decoded twice: threads and a cache of operations
# cost more memory than they save time.
pyvips.concurrency_set(1)
pyvips.cache_set_max(0)
# Loaders that libvips itself does not trust with hostile files.
pyvips.block_untrusted_set(True)


def write_picture(image: pyvips.Image, output: Output, fd: int) -> Made:
    """Write a picture as `scale_down` returns it, made smaller where an output's size is."""
    scaled = fit(image, output.size_px)
    content = encode(scaled, output.format)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
    return Made(scaled.width, scaled.height, len(content))


def fit(image: pyvips.Image, size_px: int) -> pyvips.Image:
    """Return an upright picture in sRGB with a longer side of so many pixels at most.

    One that is no larger is returned as it is, and another is made when it is encoded: to ask
    libvips for copies that nobody needs takes a millisecond each.
    """
    if max(image.width, image.height) <= size_px:
        return image
    return image.thumbnail_image(size_px, height=size_px, size="down")


def scale_down(image: pyvips.Image, size_px: int) -> pyvips.Image:
    """Return a picture, turned upright, in sRGB, with a longer side of so many pixels at most.

    It is held in memory, so that several pictures can be made of it.
    """
    # Without a profile there is nothing to transform, yet asking for one costs ten times as much
    # as all the rest: libvips then goes through Lab, only to arrive at the same pixels.
    is_ink = image.interpretation == "cmyk"
    is_plain = not image.get_typeof("icc-profile-data") and not is_ink
    # As photo programs do: another intent turns the black of inks into grey.
    colours = {} if is_plain else {"output_profile": "srgb", "intent": "perceptual"}
    if is_ink:
        colours["input_profile"] = "cmyk"  # unless it has one of its own
    small = image.thumbnail_image(size_px, height=size_px, size="down", **colours)
    if small.interpretation != "srgb":
        small = small.colourspace("srgb")
    if small.format != "uchar":
        small = small.cast("uchar")
    held = small.copy_memory()
    if not is_plain:
        # What is made of this picture shall not be transformed again.
        held = held.copy()
        held.remove("icc-profile-data")
    return held


def encode(image: pyvips.Image, file_format: ThumbnailFormat) -> bytes:
    """Return a picture as a file without any metadata: that it is sRGB goes without saying."""
    content: bytes
    match file_format:
        case ThumbnailFormat.JPEG:
            content = image.jpegsave_buffer(
                Q=QUALITY, optimize_coding=True, keep="none", background=[255, 255, 255]
            )
        case ThumbnailFormat.WEBP:
            content = image.webpsave_buffer(Q=QUALITY, effort=WEBP_EFFORT, keep="none")
    return content
