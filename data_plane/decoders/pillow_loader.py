"""Loads pictures by Pillow: formats that libvips lacks, and files on which it gives up."""

import struct
import warnings
from io import BytesIO

import pillow_heif
import pyvips
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError
from pillow_jxl import JpegXLImagePlugin

from data_plane.decoders.cicp import named_profile
from data_plane.decoders.encoding import scale_down
from data_plane.decoders.gate import refuse_too_large
from data_plane.decoders.jxl_header import jxl_size
from data_plane.decoders.loaded import Loaded, Undecodable, attach_profile, in_memory, to_16_bits
from data_plane.decoders.messages import DecodeFailed, Failure, Limits
from data_plane.decoders.sniff import Format
from data_plane.decoders.vips_loader import frames_to_look_at, is_blank

# Now: what Pillow would import when it is first needed is then out of a sandbox's reach.
Image.init()
pillow_heif.register_heif_opener(thumbnails=False, depth_images=False, decode_threads=1)
JpegXLImagePlugin.DECODE_THREADS = 0

# One each, for Pillow has loaders that start other programs.
_NAMES = {
    Format.JPEG: "JPEG",
    Format.PNG: "PNG",
    Format.WEBP: "WEBP",
    Format.GIF: "GIF",
    Format.TIFF: "TIFF",
    Format.AVIF: "AVIF",
    Format.HEIF: "HEIF",
    Format.JXL: "JXL",
    Format.JP2: "JPEG2000",
    Format.BMP: "BMP",
    Format.PSD: "PSD",
    Format.TGA: "TGA",
    Format.PPM: "PPM",
    Format.RAW: "TIFF",
}
# What its loaders raise for a broken file, whichever of their lines stumbles.
_BROKEN = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)


def load(
    content: bytes, found: Format, size_px: int, limits: Limits, *, is_tolerant: bool
) -> Loaded:
    """Load a picture, or as much of it as can be decoded if that is tolerated."""
    Image.MAX_IMAGE_PIXELS = limits.max_pixels
    ImageFile.LOAD_TRUNCATED_IMAGES = is_tolerant
    try:
        if found is Format.JXL:
            refuse_too_large(*jxl_size(content), limits)
        with warnings.catch_warnings(action="ignore"):
            return _load(content, found, size_px, limits)
    except Image.DecompressionBombError:
        raise DecodeFailed(
            Failure.TOO_LARGE,
            f"It has far more than {limits.max_pixels} pixels, which is the limit: "
            "raise MEDIAPLANE_MAX_PIXELS, or scale the picture down.",
        ) from None
    except UnidentifiedImageError:
        raise Undecodable("its header cannot be read") from None
    except pyvips.Error as error:
        raise Undecodable(str(error)) from None
    except _BROKEN as error:
        if found is Format.JXL:
            # Its library says no more than that there was an error.
            raise Undecodable("its data is broken or cut off") from None
        raise Undecodable(str(error) or type(error).__name__) from None


def _load(content: bytes, found: Format, size_px: int, limits: Limits) -> Loaded:
    with Image.open(BytesIO(content), formats=[_NAMES[found]]) as opened:
        refuse_too_large(opened.width, opened.height, limits)
        if found is Format.PNG:
            _seek_shown(opened, limits)
        # A JPEG XL picture comes upright, unless it was a JPEG before.
        is_upright = found is Format.JXL and not getattr(opened, "jpeg", False)
        image = opened if is_upright else ImageOps.exif_transpose(opened)
        profile = opened.info.get("icc_profile") or named_profile(content, found)
        return Loaded(scale_down(_to_vips(image, profile), size_px), image.width, image.height)


def _seek_shown(opened: Image.Image, limits: Limits) -> None:
    """Go to the first frame of an animated PNG that shows something; libvips knows the first."""
    count = getattr(opened, "n_frames", 1)
    if count == 1:
        return
    for number in range(frames_to_look_at(count, opened.width * opened.height, limits)):
        try:
            opened.seek(number)
            if not is_blank(_to_vips(opened, None)):
                return
        except _BROKEN:
            break
    opened.seek(0)


def _to_vips(image: Image.Image, profile: bytes | None) -> pyvips.Image:
    """Return a picture of Pillow's as one of libvips', with its profile."""
    match image.mode:
        case "I" | "I;16" | "I;16B" | "I;16L" | "F":
            return _deep_grey_to_vips(image, profile)
        case "L" | "LA" | "CMYK" | "RGB" | "RGBA":
            pass
        case _:
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    return in_memory(image.tobytes(), image.width, image.height, image.mode, profile)


def _deep_grey_to_vips(image: Image.Image, profile: bytes | None) -> pyvips.Image:
    """Return grey of more than 8 bits: of 16, or a fraction of white."""
    white = 1.0 if image.mode == "F" else 65535.0
    values = image.convert("F").tobytes()
    deep = pyvips.Image.new_from_memory(values, image.width, image.height, 1, "float")
    grey = to_16_bits(deep.copy(interpretation="b-w"), white)
    if profile:
        attach_profile(grey, profile)
    return grey
