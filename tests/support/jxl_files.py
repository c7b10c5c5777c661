"""Writes JPEG XL files as Pillow cannot: to be shown coarsely first, and turned."""

import ctypes
from typing import Any

from PIL import Image

from data_plane.decoders.jxl_loader import LIBRARY

# From jxl/encode.h.
_EFFORT, _RESPONSIVE, _PROGRESSIVE_AC, _PROGRESSIVE_DC = 0, 16, 17, 19
_NEEDS_ROOM = 2
_PROFILE, _ORIENTATION, _EXTRA_CHANNELS, _ALPHA_BITS = 9, 12, 14, 15


def jxl(
    image: Image.Image,
    *,
    is_lossless: bool = False,
    is_progressive: bool = False,
    has_container: bool = False,
    orientation: int = 1,
) -> bytes:
    """Return a picture of colours as a file, by the library whose decoder is tested."""
    assert LIBRARY is not None
    created = LIBRARY.JxlEncoderCreate
    created.restype = LIBRARY.JxlEncoderFrameSettingsCreate.restype = ctypes.c_void_p
    encoder = ctypes.c_void_p(created(None))
    try:
        settings = ctypes.c_void_p(LIBRARY.JxlEncoderFrameSettingsCreate(encoder, None))
        _done(LIBRARY.JxlEncoderUseContainer(encoder, has_container))
        has_alpha = image.mode == "RGBA"
        header = (ctypes.c_uint32 * 51)()
        LIBRARY.JxlEncoderInitBasicInfo(header)
        header[1], header[2] = image.size
        header[_PROFILE], header[_ORIENTATION] = is_lossless, orientation
        header[_EXTRA_CHANNELS], header[_ALPHA_BITS] = has_alpha, 8 * has_alpha
        _done(LIBRARY.JxlEncoderSetBasicInfo(encoder, header))
        colours = ctypes.create_string_buffer(256)
        LIBRARY.JxlColorEncodingSetToSRGB(colours, False)
        _done(LIBRARY.JxlEncoderSetColorEncoding(encoder, colours))
        _done(LIBRARY.JxlEncoderSetFrameLossless(settings, is_lossless))
        options = {_EFFORT: 3, _RESPONSIVE: int(is_progressive)}
        if not is_lossless:
            options |= {_PROGRESSIVE_AC: int(is_progressive), _PROGRESSIVE_DC: int(is_progressive)}
        for option, value in options.items():
            number = ctypes.c_int64(value)
            _done(LIBRARY.JxlEncoderFrameSettingsSetOption(settings, option, number))
        pixels = image.tobytes()
        layout = (ctypes.c_uint64 * 3)(len(image.getbands()) | 2 << 32)
        size = ctypes.c_size_t(len(pixels))
        _done(LIBRARY.JxlEncoderAddImageFrame(settings, layout, pixels, size))
        LIBRARY.JxlEncoderCloseInput(encoder)
        return _output(LIBRARY, encoder)
    finally:
        LIBRARY.JxlEncoderDestroy(encoder)


def _output(library: Any, encoder: ctypes.c_void_p) -> bytes:
    made, status = b"", _NEEDS_ROOM
    while status == _NEEDS_ROOM:
        buffer = ctypes.create_string_buffer(1 << 20)
        at, room = ctypes.c_void_p(ctypes.addressof(buffer)), ctypes.c_size_t(len(buffer))
        status = library.JxlEncoderProcessOutput(encoder, ctypes.byref(at), ctypes.byref(room))
        made += buffer.raw[: len(buffer) - room.value]
    _done(status)
    return made


def _done(status: int) -> None:
    assert status == 0
