"""Tells whether a video was cut off at its end.

Most demuxers take the end of a file for the end of a video, whatever its container says.
"""

from collections.abc import Callable

from data_plane.decoders.boxes import ends_within_a_box
from data_plane.decoders.clusters import from_the_last
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
# A part of an AVI file takes a gigabyte; a look at each would fetch blocks for nothing else.
_MAX_PARTS = 8
_NEVER_CLOSED = (bytes(4), b"\xff" * 4)
# What writers of FLV leave out of the length that they tell of a tag: some its header.
_LEFT_OUT_BYTES = (0, 1, 11)
# So many marks, each at its place, are there by no accident.
_LEAST_MARKS = 5
_PACK, _END_OF_PROGRAM = b"\0\0\x01\xba", b"\0\0\x01\xb9"
_MAX_PACK_BYTES = 14 + 7
# Several of the longest packets.
_PROGRAM_TAIL_BYTES = 256 << 10
_SEGMENT = bytes.fromhex("18538067")
_MAX_ELEMENT_HEADER_BYTES = 12
_MAX_SIZE_BYTES = 8
# More than any cluster holds; a hostile file has millions.
_MAX_ELEMENTS = 20_000


def is_cut_off(source: Source, container: str) -> bool:
    """Tell whether a file of some container ends before its content does, as far as it shows."""
    look = next((look for name, look in _LOOKS.items() if name in container.split(",")), None)
    return look is not None and look(source)


def _ogg_is_cut_off(source: Source) -> bool:
    """Tell whether the last page is incomplete, or not marked as the last."""
    tail = _tail(source, 2 * _MAX_PAGE_BYTES)
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


def _avi_is_cut_off(source: Source) -> bool:
    """Tell whether a part has fewer bytes than its header says; one never closed says none."""
    at = 0
    for _ in range(_MAX_PARTS):
        head = source.peek(at, 8)
        if not head.startswith(b"RIFF") or head[4:] in _NEVER_CLOSED:
            break
        at += 8 + int.from_bytes(head[4:], "little")
    return at > source.bytes_size


def _flv_is_cut_off(source: Source) -> bool:
    """Tell whether the file does not end with the length of its last tag."""
    first = 4 + int.from_bytes(source.peek(5, 4), "big")
    second = first + _tag_length(source, first) + 4
    third = second + _tag_length(source, second) + 4
    left_out = third - 4 - second - _told_before(source, third)
    if left_out not in _LEFT_OUT_BYTES:
        return False
    length = _told_before(source, source.bytes_size) + left_out
    last = source.bytes_size - 4 - length
    return last < first or _tag_length(source, last) != length


def _tag_length(source: Source, at: int) -> int:
    return 11 + int.from_bytes(source.peek(at + 1, 3), "big")


def _told_before(source: Source, at: int) -> int:
    return int.from_bytes(source.peek(at - 4, 4), "big")


def _transport_is_cut_off(source: Source) -> bool:
    """Tell whether the last packet is incomplete: all are of one length."""
    # The last ones count: a recording may begin within a packet, or have lost bytes on its way.
    tail = _tail(source, _HEAD_BYTES)
    for length, before in _TRANSPORT_PACKETS:
        for first in range(length):
            marks = tail[first::length]
            if len(marks) >= _LEAST_MARKS and set(marks) == {_SYNC}:
                return (len(tail) - first + before) % length != 0
    return False


def _program_is_cut_off(source: Source) -> bool:
    """Tell whether the last packet is incomplete: each says how long it is."""
    tail = _tail(source, _PROGRAM_TAIL_BYTES)
    at = tail.find(_PACK)
    while 0 <= at < len(tail):
        length = _packet_length(tail[at : at + _MAX_PACK_BYTES])
        at = at + length if length else tail.find(_PACK, at + 1)
    return at > len(tail)


def _packet_length(head: bytes) -> int | None:
    """Return how long a packet is, and more than is there if even that is cut off."""
    if len(head) < len(_PACK) and _PACK.startswith(head):
        return len(_PACK)
    if not head.startswith(_PACK[:3]) or head[3] < _END_OF_PROGRAM[3]:
        return None
    if head.startswith(_END_OF_PROGRAM):
        return len(_END_OF_PROGRAM)
    if not head.startswith(_PACK):
        return 6 + int.from_bytes(head[4:6], "big")
    is_first_edition = head[4:5] < b"\x40"
    return 12 if is_first_edition else 14 + (head[13] & 7 if len(head) >= 14 else 0)


def _matroska_is_cut_off(source: Source) -> bool:
    """Tell whether the file ends before its segment, or before a part of one without a length."""
    head = source.peek(0, _HEAD_BYTES)
    at = head.find(_SEGMENT)
    if at < 0:
        return False
    header_bytes, content_bytes = _measure(head[at : at + _MAX_ELEMENT_HEADER_BYTES])
    if content_bytes is not None:
        return source.bytes_size < at + header_bytes + content_bytes
    tail, at = from_the_last(source), 0
    for _ in range(_MAX_ELEMENTS):
        # What is no element begins with a zero.
        if at >= len(tail) or not tail[at]:
            break
        header_bytes, content_bytes = _measure(tail[at : at + _MAX_ELEMENT_HEADER_BYTES])
        # Of one without a length, what it holds follows.
        at += header_bytes + (content_bytes or 0)
    return at > len(tail)


def _measure(head: bytes) -> tuple[int, int | None]:
    """Return the lengths of an element's header and content, as far as it tells the latter."""
    name_bytes = 9 - head[0].bit_length()
    if len(head) <= name_bytes:
        return name_bytes + 1, None
    size_bytes = 9 - head[name_bytes].bit_length()
    if size_bytes > _MAX_SIZE_BYTES:
        return name_bytes + 1, None
    size = int.from_bytes(head[name_bytes : name_bytes + size_bytes], "big")
    told = size & ~(1 << 7 * size_bytes)
    is_unknown = told == (1 << 7 * size_bytes) - 1
    return name_bytes + size_bytes, None if is_unknown else told


def _tail(source: Source, length: int) -> bytes:
    return source.peek(source.bytes_size - length, length)


_LOOKS: dict[str, Callable[[Source], bool]] = {
    "ogg": _ogg_is_cut_off,
    "asf": _asf_is_cut_off,
    "mov": ends_within_a_box,
    "avi": _avi_is_cut_off,
    "flv": _flv_is_cut_off,
    "mpegts": _transport_is_cut_off,
    "mpeg": _program_is_cut_off,
    "matroska": _matroska_is_cut_off,
}
