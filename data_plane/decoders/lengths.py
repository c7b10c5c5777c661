"""Tells how many bytes a picture says it has, and fills up one that was cut off.

Decoders of some formats refuse a file that is too short as a whole; followed by zeros, they show
what is there of it.
"""

from data_plane.decoders.sniff import Format

_LARGE, _TO_THE_END = 1, 0
_CODE_STREAM = b"\xff\x4f\xff\x51"
_TILE_PART, _END_OF_CODE_STREAM = b"\xff\x90", b"\xff\xd9"
_HEADER_BYTES = 16
# Of less than one in so many bytes, a decoder makes patterns that are in no picture.
_LEAST_SHARE = 10


def length_of(content: bytes, found: Format) -> int:
    """Return how many bytes a picture says it has, or has if it does not say more."""
    match found:
        case Format.WEBP:
            told = 8 + int.from_bytes(content[4:8], "little")
        case Format.AVIF | Format.HEIF:
            told = _end_of_boxes(content)
        case Format.JXL | Format.JP2 if content.startswith(b"\0\0\0\x0c"):
            told = max(_end_of_boxes(content), _end_of_tiles(content))
        case Format.JP2:
            told = _end_of_tiles(content)
        case _:
            told = 0
    return max(told, len(content))


def fill_up(content: bytes, found: Format, max_bytes: int) -> bytes:
    """Return a picture in the length that it says it has, unless next to nothing is there of it."""
    length = length_of(content, found)
    # That of JPEG XL takes what there is, and zeros for broken data.
    is_worth_it = found is not Format.JXL and length <= min(max_bytes, len(content) * _LEAST_SHARE)
    return content.ljust(length, b"\0") if is_worth_it else content


def _end_of_boxes(content: bytes) -> int:
    """Return where the last box of an ISO media file ends, which may lie behind its content."""
    at = 0
    while len(content) - at >= _HEADER_BYTES:
        size = int.from_bytes(content[at : at + 4], "big")
        if size == _LARGE:
            size = int.from_bytes(content[at + 8 : at + 16], "big")
        if size == _TO_THE_END:
            return 0
        at += max(size, 8)
    return at


def _end_of_tiles(content: bytes) -> int:
    """Return where the last part of a JPEG 2000 code stream ends that has begun."""
    at = content.find(_CODE_STREAM)
    if at < 0:
        return 0
    at += 2
    while len(content) - at >= _HEADER_BYTES:
        marker = content[at : at + 2]
        if marker == _END_OF_CODE_STREAM:
            return 0
        if marker == _TILE_PART:
            size = int.from_bytes(content[at + 6 : at + 10], "big")
            if size == _TO_THE_END:
                return 0
            at += max(size, 12)
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return at + len(_END_OF_CODE_STREAM)
