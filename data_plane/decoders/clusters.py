"""Finds the last clusters of a Matroska file, to learn from them how it ends."""

import re
from collections import deque

from data_plane.decoders.sources import Source

# In front of them there may be pictures and fonts; behind them comes nothing, or little.
_HEAD_BYTES = 4 << 20
_TAIL_BYTES = 16 << 20
_MAGIC = b"\x1a\x45\xdf\xa3"
# A cluster: its length in one to eight bytes, a checksum perhaps, and then its time.
_CLUSTER = re.compile(
    rb"\x1f\x43\xb6\x75(?:[\x80-\xff]|[\x40-\x7f].|[\x20-\x3f].{2}|[\x10-\x1f].{3}"
    rb"|[\x08-\x0f].{4}|[\x04-\x07].{5}|[\x02\x03].{6}|\x01.{7})(?:\xbf\x84.{4})?\xe7",
    re.DOTALL,
)


def all_but_the_last(source: Source) -> range | None:
    """Return where all clusters but the last few lie, in a file that is large enough for it."""
    tail_start = source.bytes_size - _TAIL_BYTES
    if tail_start < _HEAD_BYTES or source.peek(0, len(_MAGIC)) != _MAGIC:
        return None
    first = _CLUSTER.search(source.peek(0, _HEAD_BYTES))
    last = _CLUSTER.search(source.peek(tail_start, _TAIL_BYTES))
    return range(first.start(), tail_start + last.start()) if first and last else None


def from_the_last(source: Source) -> bytes:
    """Return a file from its last cluster on, or nothing if that is nowhere near its end."""
    tail = source.peek(source.bytes_size - _TAIL_BYTES, _TAIL_BYTES)
    # Of a hostile file there may be millions: only one is held.
    last = deque(_CLUSTER.finditer(tail), maxlen=1)
    return tail[last[0].start() :] if last else b""
