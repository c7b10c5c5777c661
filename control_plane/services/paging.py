"""Pages, their sizes, and their tokens: opaque to clients, checked when they come back."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from google.protobuf.message import Message

from mediaplane.errors import InvalidArgument, InvalidPageToken
from mediaplane.protocol.driver import Listed, Row, Values

DEFAULT_SIZE = 50
MAX_SIZE = 1000
# Two of the largest pages.
_REMEMBERED = 2 * MAX_SIZE
# What a token says depends on nothing else, and to read or write one takes as long as 50 rows.
REMEMBERED_TOKENS = 256
_MAX_ID = 2**63 - 1
_ID = re.compile(r"0|[1-9][0-9]{0,18}")
# A path takes up to six times its bytes in a message, and a message has 4 MiB.
_MAX_PATH_BYTES = 512 << 10

Read = TypeVar("Read")
Page = TypeVar("Page", bound=Message)


def writer(
    page_type: type[Page],
    field: str,
    write: Callable[[Any, Values], None],
    values: Callable[[Any], Values] = tuple,
) -> Callable[[Iterable[Listed], str], Page]:
    """Return what makes a page of rows, the values of which `write` writes into empty messages.

    A page is mostly asked for again, and to write a row in Python takes longer than to read it: so
    the bytes of each are remembered, by all that is in it. Bytes of pages one behind the other are
    those of a page with the rows of all, and of one with its token alone.

    The page is handed over as these bytes, which the server sends as they are: to make a message of
    them, and the same bytes of that, would take as long as all else here.
    """

    @lru_cache(maxsize=_REMEMBERED)
    def page_of_one(row: Listed) -> bytes:
        page = page_type()
        write(getattr(page, field).add(), values(row))
        return page.SerializeToString()

    @lru_cache(maxsize=REMEMBERED_TOKENS)
    def page_of_none(token: str) -> bytes:
        return page_type(next_page_token=token).SerializeToString()

    def page_of_all(rows: Iterable[Listed], token: str) -> Any:
        return b"".join([*map(page_of_one, rows), page_of_none(token)])

    return page_of_all


def size(requested: int) -> int:
    """Return the page size to use for the one asked for."""
    if requested < 0:
        raise InvalidArgument(f"page_size is {requested}; it must not be negative.")
    return min(requested or DEFAULT_SIZE, MAX_SIZE)


def split(rows: Sequence[Read], limit: int) -> tuple[Sequence[Read], Read | None]:
    """Return the rows of a page read with one row too many, and its tail if more follow."""
    return (rows[:limit], rows[limit - 1]) if len(rows) > limit else (rows, None)


def split_paths(rows: Sequence[Row], limit: int) -> tuple[Sequence[Row], Any]:
    """Split likewise, with a shorter page where the paths are too long for one message."""
    total = 0
    for number, row in enumerate(rows[:limit]):
        total += len(row["rel_path"])
        if number and total > _MAX_PATH_BYTES:
            return split(rows, number)
    return split(rows, limit)


def fingerprint(*query: Any) -> str:
    """Return what binds a token to the query it continues."""
    return hashlib.blake2s(repr(query).encode(), digest_size=8).hexdigest()


def encode(fields: Mapping[str, Any]) -> str:
    """Return a token: base64url of JSON."""
    text = json.dumps(fields, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(
    token: str, shape: Mapping[str, type], usual: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the fields of a token that has exactly this shape, and may have what is usual else."""
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        fields = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        raise refused() from None
    if not isinstance(fields, dict):
        raise refused()
    if usual:
        fields, shape = {**usual, **fields}, {**shape, **dict.fromkeys(usual, str)}
    if fields.keys() != shape.keys():
        raise refused()
    for name, kind in shape.items():
        if type(fields[name]) is not kind:
            raise refused()
        if kind is int and not 0 <= fields[name] <= _MAX_ID:
            raise refused()
        if kind is str and not _is_storable(fields[name]):
            raise refused()
    return fields


def decode_id(token: str) -> int:
    """Return the row id of a token that is a plain number; 0 for the first page."""
    if not token:
        return 0
    if not _ID.fullmatch(token) or int(token) > _MAX_ID:
        raise refused()
    return int(token)


def decode_row(token: str, query: str) -> int:
    """Return the row id of a token of this query; 0 for the first page."""
    if not token:
        return 0
    fields = decode(token, {"id": int, "query": str})
    if fields["query"] != query:
        raise refused()
    row_id: int = fields["id"]
    return row_id


def encode_row(row_id: int, query: str) -> str:
    """Return a token for a position in a listing by id."""
    return encode({"id": row_id, "query": query})


def decode_path(token: str, query: str) -> bytes:
    """Return the path of a token of this query; empty for the first page."""
    if not token:
        return b""
    fields = decode(token, {"path": str, "query": str})
    if fields["query"] != query:
        raise refused()
    try:
        return base64.b64decode(fields["path"], validate=True)
    except (UnicodeError, binascii.Error, ValueError):
        raise refused() from None


def encode_path(path: bytes, query: str) -> str:
    """Return a token for a position in a listing by path."""
    return encode({"path": base64.b64encode(path).decode(), "query": query})


def _is_storable(text: str) -> bool:
    """Tell whether both databases can compare with a text: JSON allows more than they do."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def refused() -> InvalidPageToken:
    """Return the error for a token that is not one of ours."""
    return InvalidPageToken(
        "The page token does not belong to this listing; begin again without one."
    )
