"""Reads the size of a JPEG XL picture, whose library decodes all of it before it tells."""

from data_plane.decoders.loaded import Undecodable

_CODESTREAM = b"\xff\x0a"
# Widths by height that need no number of their own, as numerator and denominator.
_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
_LENGTHS = (9, 13, 18, 30)
# Enough for the size, wherever it begins to be written.
_SIZE_BYTES = 12


class _Bits:
    """Numbers of a few bits each, the lowest bit first."""

    def __init__(self, content: bytes) -> None:
        self._rest = int.from_bytes(content, "little")

    def take(self, count: int) -> int:
        taken = self._rest & ((1 << count) - 1)
        self._rest >>= count
        return taken


def jxl_size(content: bytes) -> tuple[int, int]:
    """Return width and height that a JPEG XL file claims, before it is turned upright."""
    start = _codestream_start(content)
    bits = _Bits(content[start + 2 : start + 2 + _SIZE_BYTES])
    is_small = bits.take(1) == 1
    height = _length(bits, is_small=is_small)
    ratio = bits.take(3)
    if ratio == 0:
        return _length(bits, is_small=is_small), height
    numerator, denominator = _RATIOS[ratio - 1]
    return height * numerator // denominator, height


def _length(bits: _Bits, *, is_small: bool) -> int:
    if is_small:
        return 8 * (bits.take(5) + 1)
    return bits.take(_LENGTHS[bits.take(2)]) + 1


def _codestream_start(content: bytes) -> int:
    """Return where the picture begins: at once, or in one of the boxes that follow one another."""
    if content.startswith(_CODESTREAM):
        return 0
    at = 0
    while at + 16 <= len(content):
        size_bytes, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        header_bytes = 8
        if size_bytes == 1:
            size_bytes, header_bytes = int.from_bytes(content[at + 8 : at + 16], "big"), 16
        # A box of a part begins with the number of the part.
        start = at + header_bytes + (4 if kind == b"jxlp" else 0)
        if kind in {b"jxlc", b"jxlp"} and content[start : start + 2] == _CODESTREAM:
            return start
        if size_bytes < header_bytes:
            break
        at += size_bytes
    raise Undecodable("no picture is in the file")
