"""Rows that PostgreSQL has written as one text each, and the values in them."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from mediaplane.protocol.driver import Listed, Values

# Rows of a page that are looked into again and again: its first and its last.
_REMEMBERED = 256
_QUOTED = re.compile(r'"((?:[^"\\]+|""|\\\\)*)"')
# How a value of each type is read. Of others no page has texts.
_READ: dict[type, Callable[[str], Any]] = {int: int, float: float, str: str}


def reader(types: Sequence[type]) -> Callable[[Listed], Values]:
    """Return what gives the values, of these types, of a row; SQLite has given them already."""
    reads = [_READ[one] for one in types]

    @lru_cache(maxsize=_REMEMBERED)
    def parsed(row: bytes) -> Values:
        fields = zip(reads, _fields(row.decode()), strict=True)
        return tuple([None if field is None else read(field) for read, field in fields])

    return lambda row: row if isinstance(row, tuple) else parsed(row)


def _fields(row: str) -> list[str | None]:
    """Return the columns of a row such as `(1,,"a, b",)`, in which two are NULL."""
    if '"' not in row:
        return [field or None for field in row[1:-1].split(",")]
    quoted: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        quoted.append(found[1].replace('""', '"').replace("\\\\", "\\"))
        return '"'

    fields = _QUOTED.sub(set_aside, row[1:-1]).split(",")
    kept = iter(quoted)
    return [next(kept) if field == '"' else field or None for field in fields]
