"""Finds the profile of colours that a picture gives by numbers of a standard alone, by CICP."""

import struct

import pillow_heif
import pyvips

from data_plane.decoders.loaded import attach_profile
from data_plane.decoders.sniff import Format

# Transfers which are that of sRGB, or meant to look like it; those of HDR are not among them.
_LIKE_SRGB = frozenset({1, 2, 4, 6, 13, 14, 15})
_BT2020, _DISPLAY_P3 = 9, 12
_SIGNATURE_BYTES, _CHUNK_HEADER_BYTES = 8, 8
_MAX_CHUNKS = 100
_BROKEN = (EOFError, LookupError, OSError, RuntimeError, SyntaxError, ValueError)


def _with_primaries(profile: bytes, primaries: dict[bytes, tuple[float, float, float]]) -> bytes:
    """Return a profile whose red, green and blue are others."""
    changed = bytearray(profile)
    (count,) = struct.unpack_from(">I", profile, 128)
    for index in range(count):
        name, at = struct.unpack_from(">4sI", profile, 132 + 12 * index)
        if name in primaries:
            numbers = (round(share * 65536) for share in primaries[name])
            struct.pack_into(">3i", changed, at + 8, *numbers)
    return bytes(changed)


_P3_PROFILE = bytes(pyvips.Operation.call("profile_load", "p3"))
_PROFILES = {
    _DISPLAY_P3: _P3_PROFILE,
    # With the white that profiles have.
    _BT2020: _with_primaries(
        _P3_PROFILE,
        {
            b"rXYZ": (0.67348, 0.27904, -0.00193),
            b"gXYZ": (0.16568, 0.67535, 0.02998),
            b"bXYZ": (0.12505, 0.04561, 0.79686),
        },
    ),
}


def with_profile(image: pyvips.Image, content: bytes, found: Format) -> pyvips.Image:
    """Return a picture of a file with the profile of its colours, if it has none of its own."""
    if image.get_typeof("icc-profile-data"):
        return image
    profile = named_profile(content, found)
    if profile:
        image = image.copy()
        attach_profile(image, profile)
    return image


def named_profile(content: bytes, found: Format) -> bytes | None:
    """Return the profile of the colours that a file names, if they are not those of sRGB."""
    match found:
        case Format.PNG:
            primaries, transfer = _of_png(content)
        case Format.AVIF | Format.HEIF:
            primaries, transfer = _of_heif(content)
        case _:
            return None
    return _PROFILES.get(primaries) if transfer in _LIKE_SRGB else None


def _of_png(content: bytes) -> tuple[int, int]:
    at = _SIGNATURE_BYTES
    for _ in range(_MAX_CHUNKS):
        name, start = content[at + 4 : at + 8], at + _CHUNK_HEADER_BYTES
        if name == b"cICP" and len(content) >= start + 2:
            return content[start], content[start + 1]
        if name in {b"IDAT", b""}:
            break
        at = start + int.from_bytes(content[at : at + 4], "big") + 4
    return 0, 0


def _of_heif(content: bytes) -> tuple[int, int]:
    try:
        told = pillow_heif.open_heif(content).info.get("nclx_profile", {})
        return told["color_primaries"], told["transfer_characteristics"]
    except _BROKEN:
        return 0, 0
