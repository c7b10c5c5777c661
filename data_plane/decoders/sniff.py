"""Tells the format of a picture by its first bytes; names lie, and decoders are picked by this."""

import re
from enum import StrEnum

from data_plane.decoders.tiff_tags import tags

_HEAD_BYTES = 4096


class Format(StrEnum):
    """Formats of pictures; RAW stands for those of all cameras."""

    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WebP"
    GIF = "GIF"
    TIFF = "TIFF"
    AVIF = "AVIF"
    SVG = "SVG"
    HEIF = "HEIF"
    JXL = "JPEG XL"
    JP2 = "JPEG 2000"
    BMP = "BMP"
    PSD = "PSD"
    TGA = "TGA"
    PPM = "PPM"
    RAW = "RAW"


_MAGIC = {
    re.compile(pattern, re.DOTALL): found
    for pattern, found in (
        (rb"\xff\xd8\xff", Format.JPEG),
        (rb"\x89PNG\r\n\x1a\n", Format.PNG),
        (rb"RIFF....WEBP", Format.WEBP),
        (rb"GIF8[79]a", Format.GIF),
        (rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n", Format.JXL),
        (rb"\xff\x4f\xff\x51|\0\0\0\x0cjP  \r\n\x87\n", Format.JP2),
        (rb"8BPS", Format.PSD),
        (rb"P[1-6]\s", Format.PPM),
        # With a size that its header can have: the two letters alone begin many a text.
        (rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", Format.BMP),
        # Olympus, Panasonic, Fujifilm, Sigma, Minolta
        (rb"IIR[OS]|MMOR|IIU\0|FUJIFILMCCD-RAW|FOVb|\0MRM", Format.RAW),
        (rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml|<!--|<!DOCTYPE svg|(?=<svg))(?=.*<svg)", Format.SVG),
    )
}
_TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_BRANDS = {
    b"avif": Format.AVIF,
    b"avis": Format.AVIF,
    b"crx ": Format.RAW,
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), Format.HEIF),
    # Says that it is a picture, not how it is coded: only if no other brand says more.
    b"mif1": Format.HEIF,
    b"msf1": Format.HEIF,
}
# Cameras write TIFF files whose first picture is the small one; these say by their name alone
# that the rest of such a file is RAW.
_RAW_EXTENSIONS = frozenset(
    {"cr2", "nef", "nrw", "arw", "sr2", "srf", "dng", "pef", "srw", "3fr", "erf", "kdc", "mos"}
)
_TAG_SUBFILE_TYPE, _TAG_MAKE, _TAG_DNG_VERSION = 0x00FE, 0x010F, 0xC612


def sniff(content: bytes, extension: str = "") -> Format | None:
    """Return the format of a picture, or None if it is of none that is known here."""
    head = content[:_HEAD_BYTES]
    if head.startswith(_TIFF_MAGIC):
        return Format.RAW if _is_raw(head, extension) else Format.TIFF
    if head[4:8] == b"ftyp":
        return _branded(head)
    if found := next((found for magic, found in _MAGIC.items() if magic.match(head)), None):
        return found
    has_footer = content.endswith(b"TRUEVISION-XFILE.\0")
    return Format.TGA if has_footer or extension == "tga" else None


def _branded(head: bytes) -> Format | None:
    """Return what an ISO media file is: its brands follow one another, the main one first."""
    size_bytes = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, size_bytes - 3, 4))]
    found = [_BRANDS[brand] for brand in brands if brand in _BRANDS]
    return next((one for one in found if one is not Format.HEIF), found[0] if found else None)


def _is_raw(head: bytes, extension: str) -> bool:
    """Tell a camera's file from other TIFF files: those hold a small picture first."""
    if head[8:10] == b"CR" or extension in _RAW_EXTENSIONS:
        return True
    found = dict(tags(head))
    return _TAG_DNG_VERSION in found or (
        found.get(_TAG_SUBFILE_TYPE, 0) & 1 == 1 and _TAG_MAKE in found
    )
