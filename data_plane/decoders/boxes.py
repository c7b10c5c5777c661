"""Goes from box to box of an ISO media file (MP4, MOV), to learn how it ends."""

import re

from data_plane.decoders.sources import Source

# What some cameras write behind the last box is none. A box of many bytes has one of these names,
# and one with a name of its maker has few.
_LARGE_BOXES = frozenset(
    {b"mdat", b"moov", b"moof", b"free", b"skip", b"wide", b"uuid", b"meta", b"udta", b"mfra"}
)
_NAME = re.compile(rb"[0-9A-Za-z]{4}")
_FEW_BYTES = 16 << 20
_TO_THE_END, _LARGE = 0, 1
_HEADER_BYTES, _LARGE_HEADER_BYTES = 8, 16
# A file has few boxes, unless it comes in fragments. Each may lie in a block of its own that
# nobody else needs, and a hostile file has millions of them: so its end is looked at instead.
_MAX_BOXES = 1000
_MAX_FETCHED_BYTES = 4 << 20
_FRAGMENT, _FRAGMENT_BEGINS = b"moof", b"moof\0\0\0\x10mfhd"
# A fragment has from one picture to some seconds.
_TAILS_BYTES = (1 << 20, 4 << 20, 16 << 20)


def ends_within_a_box(source: Source) -> bool:
    """Tell whether the last box is incomplete, or a fragment of which only the index is there."""
    names, end = _follow(source, 0)
    if end < source.bytes_size and _FRAGMENT in names:
        names, end = _follow(source, _last_fragment(source))
    is_index_alone = end == source.bytes_size and names[-1:] == [_FRAGMENT]
    return end > source.bytes_size or is_index_alone


def _follow(source: Source, at: int) -> tuple[list[bytes], int]:
    """Return the names of all boxes from one on, and where the last ends: beyond a file cut off."""
    names: list[bytes] = []
    fetched_bytes = source.bytes_read
    while (
        at < source.bytes_size
        and len(names) < _MAX_BOXES
        and source.bytes_read - fetched_bytes <= _MAX_FETCHED_BYTES
    ):
        head = source.peek(at, _LARGE_HEADER_BYTES)
        length = _length(head)
        if length is None:
            return names, source.bytes_size
        names.append(head[4:8])
        at += length
    return names, at


def _length(head: bytes) -> int | None:
    """Return how long a box is, more than is there if its header is cut off; None for the rest."""
    size, name = int.from_bytes(head[:4], "big"), head[4:8]
    # Zeros fill up a file, unless they belong to a box.
    if size == _TO_THE_END:
        return None
    if len(head) < _HEADER_BYTES:
        return _HEADER_BYTES
    if name not in _LARGE_BOXES and (size >= _FEW_BYTES or not _NAME.fullmatch(name)):
        return None
    if size == _LARGE:
        if len(head) < _LARGE_HEADER_BYTES:
            return _LARGE_HEADER_BYTES
        size = int.from_bytes(head[8:], "big")
        return size if size >= _LARGE_HEADER_BYTES else None
    return size if size >= _HEADER_BYTES else None


def _last_fragment(source: Source) -> int:
    """Return where the last fragment begins; the end of the file if that is nowhere near."""
    for length in _TAILS_BYTES:
        start = max(0, source.bytes_size - length)
        at = source.peek(start, length).rfind(_FRAGMENT_BEGINS, 4)
        if at >= 0:
            return start + at - 4
    return source.bytes_size
