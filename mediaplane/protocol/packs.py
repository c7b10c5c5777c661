"""Packs many files of a scan into one value: a row for each takes several times as long.

All numbers are little-endian and signed, of eight bytes: how many files there are, then the sizes
of all files, their times of change, devices and inodes. A byte for each file says what medium it
is. The paths come last, each but the last followed by NUL, which no path contains.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence

from mediaplane.protocol.values import MediaType

# A path with its medium, size, time of change, device and inode.
Packed = tuple[bytes, str | None, int, int, int, int]
FIELDS = ("rel_path", "media_type", "size_bytes", "mtime_ns", "device", "inode")

_NUMBER_BYTES = 8
_NUMBERS = 4
_MEDIA: tuple[str | None, ...] = (None, MediaType.IMAGE.value, MediaType.VIDEO.value)
_CODES = {medium: code for code, medium in enumerate(_MEDIA)}


def pack(paths: Sequence[bytes], media: Iterable[str | None], *numbers: Iterable[int]) -> bytes:
    """Return files as one value, of their fields each by itself."""
    codes = bytes(map(_CODES.__getitem__, media))
    return b"".join([_written([len(paths)]), *map(_written, numbers), codes, b"\0".join(paths)])


def unpack(packed: bytes) -> list[Packed]:
    """Return the files of such a value; one that is not whole is a ValueError."""
    whole = memoryview(packed)
    (count,) = _read(whole[:_NUMBER_BYTES]) or (0,)
    length = count * _NUMBER_BYTES
    starts = [_NUMBER_BYTES + place * length for place in range(_NUMBERS + 1)]
    names_at = starts[-1] + count
    if count < 1 or names_at > len(whole):
        raise ValueError("A batch of files is not whole.")
    numbers = [_read(whole[start : start + length]) for start in starts[:-1]]
    media = map(_medium, whole[starts[-1] : names_at])
    paths = bytes(whole[names_at:]).split(b"\0")
    return list(zip(paths, media, *numbers, strict=True))


def _medium(code: int) -> str | None:
    if code >= len(_MEDIA):
        raise ValueError(f"A batch of files has a medium {code}, which is not known.")
    return _MEDIA[code]


def _written(numbers: Iterable[int]) -> bytes:
    written = array("q", numbers)
    if sys.byteorder == "big":
        written.byteswap()
    return written.tobytes()


def _read(part: memoryview) -> Sequence[int]:
    numbers = array("q")
    numbers.frombytes(part)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
