"""Loads what is there of a JPEG XL picture that was cut off, which only libjxl itself can."""

import ctypes
from importlib.machinery import PathFinder
from importlib.util import find_spec

import pyvips

from data_plane.decoders.encoding import scale_down
from data_plane.decoders.gate import refuse_too_large
from data_plane.decoders.loaded import Loaded, Undecodable, in_memory
from data_plane.decoders.messages import Limits
from data_plane.decoders.sniff import Format
from data_plane.decoders.vips_loader import raise_undecodable

# From jxl/decode.h and jxl/types.h, whose numbers stay as they are.
_SUCCESS, _NEEDS_MORE, _NEEDS_PIXELS = 0, 2, 5
_HEADER, _COLOURS, _PICTURE = 0x40, 0x100, 0x1000
_BYTES, _NATIVE_ORDER, _PACKED = 2, 0, 0
_OF_THE_PIXELS = 1
# Places of numbers in the header, all of which have 32 bits.
_WIDTH, _HEIGHT, _COLOUR_CHANNELS, _ALPHA_BITS = 1, 2, 13, 15
_HEADER_NUMBERS = 51

_SIGNATURES = {
    "Create": (ctypes.c_void_p,),
    "Destroy": (ctypes.c_void_p,),
    "SubscribeEvents": (ctypes.c_void_p, ctypes.c_int),
    "SetInput": (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
    "ProcessInput": (ctypes.c_void_p,),
    "GetBasicInfo": (ctypes.c_void_p, ctypes.c_void_p),
    "GetICCProfileSize": (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    "GetColorAsICCProfile": (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    "SetImageOutBuffer": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
    "FlushImage": (ctypes.c_void_p,),
}


class _PixelFormat(ctypes.Structure):
    _fields_ = (
        ("channels", ctypes.c_uint32),
        ("sample", ctypes.c_int),
        ("order", ctypes.c_int),
        ("alignment", ctypes.c_size_t),
    )


def _find_library() -> ctypes.CDLL | None:
    """Return libjxl, which is part of a module of Python; None where that does not offer it."""
    package = find_spec("pylibjxl")
    # Not imported: its own functions want all of a picture, and bring modules and threads along.
    module = package and PathFinder.find_spec("_pylibjxl", package.submodule_search_locations)
    if not module or not module.origin:
        return None
    try:
        library = ctypes.CDLL(module.origin)
        for name, arguments in _SIGNATURES.items():
            getattr(library, f"JxlDecoder{name}").argtypes = arguments
    except (AttributeError, OSError):
        # Pictures that were cut off are not worth the rest of them.
        return None
    library.JxlDecoderCreate.restype = ctypes.c_void_p
    return library


# Now: a sandbox allows no more libraries later.
LIBRARY = _find_library()


def load(
    content: bytes,
    found: Format,  # noqa: ARG001 - loaders are called alike
    size_px: int,
    limits: Limits,
    *,
    is_tolerant: bool,  # noqa: ARG001
) -> Loaded:
    """Load as much of a picture as can be decoded."""
    if LIBRARY is None:
        raise Undecodable("no part of it can be decoded on this machine")
    decoder = LIBRARY.JxlDecoderCreate(None)
    if decoder is None:
        raise MemoryError
    try:
        image = _decode(LIBRARY, decoder, content, limits)
        return Loaded(scale_down(image, size_px), image.width, image.height)
    except pyvips.Error as error:
        raise_undecodable(error)
    finally:
        LIBRARY.JxlDecoderDestroy(decoder)


def _decode(library: ctypes.CDLL, decoder: int, content: bytes, limits: Limits) -> pyvips.Image:
    library.JxlDecoderSubscribeEvents(decoder, _HEADER | _COLOURS | _PICTURE)
    library.JxlDecoderSetInput(decoder, content, len(content))
    _advance(library, decoder, _HEADER)
    header = (ctypes.c_uint32 * _HEADER_NUMBERS)()
    library.JxlDecoderGetBasicInfo(decoder, header)
    # As it is shown: libjxl turns it upright.
    width, height = header[_WIDTH], header[_HEIGHT]
    refuse_too_large(width, height, limits)
    _advance(library, decoder, _COLOURS)
    profile = _profile(library, decoder)
    _advance(library, decoder, _NEEDS_PIXELS)
    mode = ("L" if header[_COLOUR_CHANNELS] == 1 else "RGB") + "A" * (header[_ALPHA_BITS] > 0)
    pixels = bytearray(width * height * len(mode))
    layout = _PixelFormat(len(mode), _BYTES, _NATIVE_ORDER, _PACKED)
    place = (ctypes.c_char * len(pixels)).from_buffer(pixels)
    library.JxlDecoderSetImageOutBuffer(decoder, ctypes.byref(layout), place, len(pixels))
    is_cut_off = _advance(library, decoder, _PICTURE, _NEEDS_MORE) == _NEEDS_MORE
    # Draws also those parts of which no more than a coarse picture is there.
    if is_cut_off and library.JxlDecoderFlushImage(decoder) != _SUCCESS:
        raise Undecodable("too little of it is there")
    return in_memory(pixels, width, height, mode, profile)


def _advance(library: ctypes.CDLL, decoder: int, *expected: int) -> int:
    """Decode up to where something is to be done."""
    status: int = library.JxlDecoderProcessInput(decoder)
    if status not in expected:
        raise Undecodable("its data is broken or cut off")
    return status


def _profile(library: ctypes.CDLL, decoder: int) -> bytes | None:
    size = ctypes.c_size_t()
    library.JxlDecoderGetICCProfileSize(decoder, _OF_THE_PIXELS, ctypes.byref(size))
    profile = ctypes.create_string_buffer(size.value)
    status = library.JxlDecoderGetColorAsICCProfile(decoder, _OF_THE_PIXELS, profile, size)
    return profile.raw if status == _SUCCESS and size.value else None
