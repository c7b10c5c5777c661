"""Writes TIFF files, also such as no library here writes."""

import struct
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

BYTE, ASCII, SHORT, LONG, SRATIONAL = 1, 2, 3, 4, 10
_FORMATS = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", SRATIONAL: "ii"}
_SAMPLE_FORMATS = {"u": 1, "i": 2, "f": 3}

Order = Literal["<", ">"]
Tags = dict[int, tuple[int, list[int]]]


def tiff(
    pixels: NDArray[np.generic],
    photometric: int,
    extra_samples: Sequence[int] = (),
    order: Order = "<",
) -> bytes:
    """Return a TIFF file of these rows of pixels, whatever their samples are."""
    height, width, samples = pixels.shape
    tags: Tags = {
        256: (LONG, [width]),
        257: (LONG, [height]),
        258: (SHORT, [pixels.dtype.itemsize * 8] * samples),
        259: (SHORT, [1]),
        262: (SHORT, [photometric]),
        277: (SHORT, [samples]),
        278: (LONG, [height]),
        339: (SHORT, [_SAMPLE_FORMATS[pixels.dtype.kind]] * samples),
    }
    if extra_samples:
        tags[338] = (SHORT, list(extra_samples))
    strip = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
    magic = b"II*\0" if order == "<" else b"MM\0*"
    return magic + struct.pack(f"{order}I", 8) + directory(8, tags, strip, order)


def directory(at: int, tags: Tags, strip: bytes, order: Order = "<") -> bytes:
    """Return a directory of TIFF at a place, followed by its values and its only strip."""
    tags = tags | {273: (LONG, [0]), 279: (LONG, [len(strip)])}
    values_at = at + 2 + 12 * len(tags) + 4
    packed = {tag: _pack(kind, values, order) for tag, (kind, values) in tags.items()}
    beyond = sum(len(value) + len(value) % 2 for value in packed.values() if len(value) > 4)
    packed[273] = struct.pack(f"{order}I", values_at + beyond)
    entries, values = b"", b""
    for tag, value in sorted(packed.items()):
        kind, numbers = tags[tag]
        count = len(numbers) // len(_FORMATS[kind])
        entries += struct.pack(f"{order}HHI", tag, kind, count)
        if len(value) <= 4:
            entries += value.ljust(4, b"\0")
        else:
            entries += struct.pack(f"{order}I", values_at + len(values))
            values += value + b"\0" * (len(value) % 2)
    padding = b"\0" * (len(strip) % 2)
    return struct.pack(f"{order}H", len(tags)) + entries + b"\0\0\0\0" + values + strip + padding


def _pack(kind: int, values: list[int], order: Order) -> bytes:
    return struct.pack(f"{order}{len(values)}{_FORMATS[kind][0]}", *values)
