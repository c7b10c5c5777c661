"""Writes RAW files as cameras do: a sensor's data, and maybe a preview in front of it."""

import struct

import numpy as np

_BYTE, _ASCII, _SHORT, _LONG, _SRATIONAL = 1, 2, 3, 4, 10
_FORMATS = {_BYTE: "B", _ASCII: "B", _SHORT: "H", _LONG: "I", _SRATIONAL: "ii"}

Tags = dict[int, tuple[int, list[int]]]


def dng(width: int, height: int, *, orientation: int = 1, preview: bytes = b"") -> bytes:
    """Return a DNG file whose sensor saw red above and blue below, with a JPEG as its preview."""
    # Cells in a square are red, green, green, blue.
    cells = np.full((height, width), 400, np.uint16)
    cells[: height // 2 : 2, ::2] = 15_000
    cells[height // 2 + 1 :: 2, 1::2] = 15_000
    camera: Tags = {
        271: (_ASCII, [*b"Make\0"]),
        272: (_ASCII, [*b"Model\0"]),
        274: (_SHORT, [orientation]),
        50706: (_BYTE, [1, 4, 0, 0]),
        50708: (_ASCII, [*b"Make Model\0"]),
        # The sensor sees as the eye does, which keeps the colours pure.
        50721: (_SRATIONAL, [3, 1, -1, 1, 0, 1, -1, 1, 2, 1, 0, 1, 0, 1, 0, 1, 1, 1]),
        50728: (_SRATIONAL, [1, 1, 1, 1, 1, 1]),
        50778: (_SHORT, [21]),
    }
    sensor: Tags = {
        254: (_LONG, [0]),
        256: (_LONG, [width]),
        257: (_LONG, [height]),
        258: (_SHORT, [16]),
        259: (_SHORT, [1]),
        262: (_SHORT, [32803]),
        277: (_SHORT, [1]),
        278: (_LONG, [height]),
        33421: (_SHORT, [2, 2]),
        33422: (_BYTE, [0, 1, 1, 2]),
        50717: (_LONG, [16_000]),
    }
    if not preview:
        return b"II*\0" + struct.pack("<I", 8) + _directory(8, camera | sensor, cells.tobytes())
    icon: Tags = {
        254: (_LONG, [1]),
        256: (_LONG, [width]),
        257: (_LONG, [height]),
        258: (_SHORT, [8, 8, 8]),
        259: (_SHORT, [7]),
        262: (_SHORT, [6]),
        277: (_SHORT, [3]),
        278: (_LONG, [height]),
    }
    # The place of the sensor's directory is known once the first one's length is.
    length = len(_directory(8, camera | icon | {330: (_LONG, [0])}, preview))
    first = _directory(8, camera | icon | {330: (_LONG, [8 + length])}, preview)
    second = _directory(8 + length, sensor, cells.tobytes())
    return b"II*\0" + struct.pack("<I", 8) + first + second


def _directory(at: int, tags: Tags, strip: bytes) -> bytes:
    """Return a directory of TIFF at a place, followed by its values and its only strip."""
    tags = tags | {273: (_LONG, [0]), 279: (_LONG, [len(strip)])}
    values_at = at + 2 + 12 * len(tags) + 4
    packed = {tag: _pack(kind, values) for tag, (kind, values) in tags.items()}
    beyond = sum(len(value) + len(value) % 2 for value in packed.values() if len(value) > 4)
    packed[273] = struct.pack("<I", values_at + beyond)
    entries, values = b"", b""
    for tag, value in sorted(packed.items()):
        kind, numbers = tags[tag]
        count = len(numbers) // len(_FORMATS[kind])
        entries += struct.pack("<HHI", tag, kind, count)
        if len(value) <= 4:
            entries += value.ljust(4, b"\0")
        else:
            entries += struct.pack("<I", values_at + len(values))
            values += value + b"\0" * (len(value) % 2)
    padding = b"\0" * (len(strip) % 2)
    return struct.pack("<H", len(tags)) + entries + b"\0\0\0\0" + values + strip + padding


def _pack(kind: int, values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}{_FORMATS[kind][0]}", *values)
