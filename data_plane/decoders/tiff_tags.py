"""Reads the tags of a TIFF file that say what its first picture is."""

import struct
from collections.abc import Iterator

# By the type of a tag; others are of no interest here.
_NUMBERS = {1: "B", 3: "H", 4: "I"}
_MAX_TAGS = 200


def tags(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield tags with the first number of each, 0 if there is none, as far as they are here."""
    order = "<" if content[:1] == b"I" else ">"
    is_big = content[2:4] in (b"+\0", b"\0+")
    length, offset, room = ("Q", "Q", 8) if is_big else ("H", "I", 4)
    try:
        (at,) = struct.unpack_from(order + offset, content, room)
        (count,) = struct.unpack_from(order + length, content, at)
        at += struct.calcsize(order + length)
        for _ in range(min(count, _MAX_TAGS)):
            tag, kind, numbers = struct.unpack_from(f"{order}HH{offset}", content, at)
            number = f"{order}{_NUMBERS.get(kind, 'B')}"
            value_at = at + 4 + room
            if numbers * struct.calcsize(number) > room:
                (value_at,) = struct.unpack_from(order + offset, content, value_at)
            has_value = kind in _NUMBERS and value_at + 4 <= len(content)
            yield tag, struct.unpack_from(number, content, value_at)[0] if has_value else 0
            at += 4 + 2 * room
    except (struct.error, OverflowError):
        return
