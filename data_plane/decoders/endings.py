"""Tells whether a video was cut off at its end.

Most demuxers take the end of a file for the end of a video, whatever its container says.
"""

from collections.abc import Callable

from data_plane.decoders.sources import Source

_PAGE = b"OggS"
_MAX_PAGE_BYTES = 65_307
_PAGE_HEADER_BYTES = 27
_LAST_PAGE = 0x04
_FILE_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_IS_BROADCAST = 0x01
_HEAD_BYTES = 4096
_SYNC = 0x47
# Bytes of a packet, and of what may stand before it: a time, or nothing.
_TRANSPORT_PACKETS = ((188, 0), (192, 4), (204, 0))
_SEGMENT = bytes.fromhex("18538067")


def is_cut_off(source: Source, container: str) -> bool:
    """Tell whether a file of some container ends before its content does, as far as it shows."""
    look = next((look for name, look in _LOOKS.items() if name in container.split(",")), None)
    return look is not None and look(source)


def _ogg_is_cut_off(source: Source) -> bool:
    """Tell whether the last page is incomplete, or not marked as the last."""
    tail = source.peek(source.bytes_size - 2 * _MAX_PAGE_BYTES, 2 * _MAX_PAGE_BYTES)
    page, at = b"", tail.find(_PAGE)
    # From page to page, since what they hold may look like the beginning of one.
    while at >= 0:
        page = tail[at : at + _MAX_PAGE_BYTES]
        at = tail.find(_PAGE, at + _page_length(page))
    return len(page) < _page_length(page) or not page[5] & _LAST_PAGE


def _page_length(page: bytes) -> int:
    if len(page) < _PAGE_HEADER_BYTES:
        return _PAGE_HEADER_BYTES
    segments = page[_PAGE_HEADER_BYTES : _PAGE_HEADER_BYTES + page[26]]
    return _PAGE_HEADER_BYTES + page[26] + sum(segments)


def _asf_is_cut_off(source: Source) -> bool:
    """Tell whether there are fewer bytes than its header says; a broadcast cannot know."""
    head = source.peek(0, _HEAD_BYTES)
    at = head.find(_FILE_PROPERTIES)
    properties = head[at : at + 104]
    if at < 0 or len(properties) < 104 or properties[88] & _IS_BROADCAST:
        return False
    return source.bytes_size < int.from_bytes(properties[40:48], "little")


def _transport_is_cut_off(source: Source) -> bool:
    """Tell whether the last packet is incomplete: all are of one length."""
    head = source.peek(0, _HEAD_BYTES)
    for length, before in _TRANSPORT_PACKETS:
        marks = head[before::length]
        if marks and all(mark == _SYNC for mark in marks):
            return source.bytes_size % length != 0
    return False


def _matroska_is_cut_off(source: Source) -> bool:
    """Tell whether the file ends before its segment; one of a live recording has no length."""
    head = source.peek(0, _HEAD_BYTES)
    at = head.find(_SEGMENT) + len(_SEGMENT)
    if at < len(_SEGMENT) or at + 8 > len(head) or not head[at]:
        return False
    length = 9 - head[at].bit_length()
    told = int.from_bytes(head[at : at + length], "big") & ~(1 << 7 * length)
    is_unknown = told == (1 << 7 * length) - 1
    return not is_unknown and source.bytes_size < at + length + told


_LOOKS: dict[str, Callable[[Source], bool]] = {
    "ogg": _ogg_is_cut_off,
    "asf": _asf_is_cut_off,
    "mpegts": _transport_is_cut_off,
    "matroska": _matroska_is_cut_off,
}
