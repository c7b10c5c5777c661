"""Relative paths as raw bytes: which are legal, how they are shown, and how names become slugs."""

import re
import unicodedata
from typing import NewType

# Linux file names are bytes. They are never normalised or decoded to be used as a key.
RelPath = NewType("RelPath", bytes)

MAX_COMPONENT_BYTES = 255
# PATH_MAX counts the terminating NUL.
MAX_PATH_BYTES = 4095
MAX_SLUG_CHARS = 63

_NOT_NAMES = {b"": "empty_component", b".": "dot_component", b"..": "dotdot_component"}

# Letters and marks by category, yet drawn as nothing at all.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_FIRST_ESCAPED_BYTE = 0xDC80
_LAST_ESCAPED_BYTE = 0xDCFF


class PathRefused(ValueError):
    """A path that can never name a file beneath a root; `reason` is stable and machine-readable."""

    def __init__(self, reason: str, raw: bytes) -> None:
        super().__init__(reason, raw)
        self.reason = reason
        self.raw = raw

    def __str__(self) -> str:
        return (
            f"path refused ({self.reason}): '{display(self.raw)}'; "
            "give a plain relative path without '.', '..' or empty components"
        )


def check_rel_path(raw: bytes) -> RelPath:
    """Return `raw` unchanged when it is a plain relative path, else raise `PathRefused`."""
    if not raw:
        raise PathRefused("empty", raw)
    if raw[0] == ord("/"):
        raise PathRefused("absolute", raw)
    if len(raw) > MAX_PATH_BYTES:
        raise PathRefused("too_long", raw)
    if b"\0" in raw:
        raise PathRefused("nul", raw)
    for component in raw.split(b"/"):
        if component in _NOT_NAMES:
            raise PathRefused(_NOT_NAMES[component], raw)
        if len(component) > MAX_COMPONENT_BYTES:
            raise PathRefused("component_too_long", raw)
    return RelPath(raw)


def display(raw: bytes) -> str:
    """One printable line for terminals, logs and JSON; different paths never look the same."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text and _INVISIBLE.isdisjoint(text):
        return text
    return "".join(map(_show, text))


def _show(char: str) -> str:
    point = ord(char)
    if char == "\\":
        return "\\\\"
    if _is_visible(char):
        return char
    if _FIRST_ESCAPED_BYTE <= point <= _LAST_ESCAPED_BYTE:
        return f"\\x{point - 0xDC00:02x}"
    # \x above 7f is kept for undecodable bytes, else U+009B and the byte 9b would look the same.
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def _is_visible(char: str) -> bool:
    # Wide and no-break spaces are ordinary in Japanese names and in macOS screenshots.
    is_space = unicodedata.category(char) == "Zs"
    return is_space or (char.isprintable() and char not in _INVISIBLE)


def slugify(name: str) -> str:
    """Fold a name to `[a-z0-9-]` for a URL; two names may share a slug."""
    folded = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", folded.lower()).strip("-")
    return words[:MAX_SLUG_CHARS].rstrip("-") or "library"
