"""Writes RAW files as cameras do: a sensor's data, and maybe a preview in front of it."""

import struct

import numpy as np

from tests.support.tiff_files import ASCII, BYTE, LONG, SHORT, SRATIONAL, Tags, directory


def dng(width: int, height: int, *, orientation: int = 1, preview: bytes = b"") -> bytes:
    """Return a DNG file whose sensor saw red above and blue below, with a JPEG as its preview."""
    # Cells in a square are red, green, green, blue.
    cells = np.full((height, width), 400, np.uint16)
    cells[: height // 2 : 2, ::2] = 15_000
    cells[height // 2 + 1 :: 2, 1::2] = 15_000
    camera: Tags = {
        271: (ASCII, [*b"Make\0"]),
        272: (ASCII, [*b"Model\0"]),
        274: (SHORT, [orientation]),
        50706: (BYTE, [1, 4, 0, 0]),
        50708: (ASCII, [*b"Make Model\0"]),
        # The sensor sees as the eye does, which keeps the colours pure.
        50721: (SRATIONAL, [3, 1, -1, 1, 0, 1, -1, 1, 2, 1, 0, 1, 0, 1, 0, 1, 1, 1]),
        50728: (SRATIONAL, [1, 1, 1, 1, 1, 1]),
        50778: (SHORT, [21]),
    }
    sensor: Tags = {
        254: (LONG, [0]),
        256: (LONG, [width]),
        257: (LONG, [height]),
        258: (SHORT, [16]),
        259: (SHORT, [1]),
        262: (SHORT, [32803]),
        277: (SHORT, [1]),
        278: (LONG, [height]),
        33421: (SHORT, [2, 2]),
        33422: (BYTE, [0, 1, 1, 2]),
        50717: (LONG, [16_000]),
    }
    if not preview:
        return b"II*\0" + struct.pack("<I", 8) + directory(8, camera | sensor, cells.tobytes())
    icon: Tags = {
        254: (LONG, [1]),
        256: (LONG, [width]),
        257: (LONG, [height]),
        258: (SHORT, [8, 8, 8]),
        259: (SHORT, [7]),
        262: (SHORT, [6]),
        277: (SHORT, [3]),
        278: (LONG, [height]),
    }
    # The place of the sensor's directory is known once the first one's length is.
    length = len(directory(8, camera | icon | {330: (LONG, [0])}, preview))
    first = directory(8, camera | icon | {330: (LONG, [8 + length])}, preview)
    second = directory(8 + length, sensor, cells.tobytes())
    return b"II*\0" + struct.pack("<I", 8) + first + second
