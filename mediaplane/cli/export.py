"""Writes duplicate groups with their files for other programs, one group after the other."""

import base64
import codecs
import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache, partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from mediaplane.cli.documents import document, enum_name, library_of, time_text
from mediaplane.paths import display

if TYPE_CHECKING:
    from mediaplane.client import Client

# The error of a file that a verify job found damaged.
DAMAGED = "bit_rot"
# The release whose reports these are like.
_FCLONES_VERSION = "0.35.0"
_STFU8_SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


class Format(StrEnum):
    """What an export looks like."""

    JSON = "json"
    CSV = "csv"
    FDUPES = "fdupes"
    FCLONES = "fclones"


class Copy(NamedTuple):
    """One file of a group; its path is absolute, in the bytes of the file system."""

    library: str
    path: bytes


Export = Iterable[tuple[Any, list[Copy]]]


def export(client: "Client", groups: Iterable[Any], form: Format, sink: IO[bytes]) -> int:
    """Write groups as they come in; no more than one is held in memory.

    Returns how many damaged copies were left out.
    """
    writers: dict[Format, Callable[[Export, IO[bytes]], None]] = {
        Format.JSON: _write_json,
        Format.CSV: _write_csv,
        Format.FDUPES: _write_fdupes,
        Format.FCLONES: partial(_write_fclones, client),
    }
    left_out: list[int] = []
    writers[form](_with_copies(client, groups, left_out.append), sink)
    return sum(left_out)


def _with_copies(
    client: "Client", groups: Iterable[Any], leave_out: Callable[[int], None]
) -> Iterator[tuple[Any, list[Copy]]]:
    @cache
    def root(slug: str) -> bytes:
        return client.library(slug).root_path

    for group in groups:
        copies, damaged = [], 0
        for file in client.duplicate_files(group.group_key, tenant=group.tenant):
            # It is listed by the hash that it had; kept as the last copy, it would be none.
            if file.error_code == DAMAGED:
                damaged += 1
                continue
            path = os.path.join(root(library_of(file)), file.rel_path)
            copies.append(Copy(library_of(file), path))
        if damaged:
            leave_out(damaged)
        # Files may have vanished since the group was listed; one alone is no duplicate.
        if len(copies) > 1:
            yield group, copies


def _write_json(found: Export, sink: IO[bytes]) -> None:
    documents = (
        {
            **document(group),
            **_figures(group, copies),
            "files": [{"library": copy.library, **_path_fields(copy.path)} for copy in copies],
        }
        for group, copies in found
    )
    _write_documents('{"groups": [', documents, sink)


def _figures(group: Any, copies: list[Copy]) -> dict[str, int]:
    """Count the copies that are written, which may be fewer than the group has."""
    return {
        "file_count": len(copies),
        "total_size_bytes": len(copies) * group.size_bytes,
        "reclaimable_bytes": (len(copies) - 1) * group.size_bytes,
    }


def _write_csv(found: Export, sink: IO[bytes]) -> None:
    rows = csv.writer(codecs.getwriter("utf-8")(sink), lineterminator="\n")
    rows.writerow(["group_key", "size_bytes", "library", *_path_fields(b"")])
    for group, copies in found:
        for copy in copies:
            fields = _path_fields(copy.path).values()
            rows.writerow([group.group_key, group.size_bytes, copy.library, *fields])


def _write_fdupes(found: Export, sink: IO[bytes]) -> None:
    for _, copies in found:
        for copy in copies:
            # A line is a path, so a line break in a name cannot stay what it is.
            sink.write(copy.path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n") + b"\n")
        sink.write(b"\n")


def _write_fclones(client: "Client", found: Export, sink: IO[bytes]) -> None:
    """Write what `fclones group --format json` would, for `fclones remove` and `fclones link`."""
    libraries = list(client.libraries())
    header = {
        "version": _FCLONES_VERSION,
        "timestamp": _known_since(libraries),
        # Read again by fclones, which takes its settings from it.
        "command": ["fclones", "group", *(_stfu8(library.root_path) for library in libraries)],
        "base_dir": "/",
        "stats": None,  # known only behind the last group
    }
    documents = (
        {
            "file_len": group.size_bytes,
            "file_hash": group.group_key.partition(":")[2],
            "files": [_stfu8(copy.path) for copy in copies],
        }
        for group, copies in found
    )
    _write_documents(f'{{"header": {json.dumps(header)}, "groups": [', documents, sink)


def _known_since(libraries: list[Any]) -> str:
    """Return the moment up to which all files are known.

    fclones keeps its hands off groups with a file that was modified later: no content that we
    have not seen is taken for a copy.
    """
    moments = [
        library.last_scan.start_time
        if enum_name(library.last_scan, "state") == "succeeded"
        else library.create_time
        for library in libraries
    ]
    seconds, nanos = min(((moment.seconds, moment.nanos) for moment in moments), default=(0, 0))
    return time_text(seconds, nanos)


def _stfu8(path: bytes) -> str:
    """Write a path as fclones does, in STFU-8: what is no visible UTF-8 is escaped."""
    return "".join(map(_stfu8_character, path.decode("utf-8", "surrogateescape")))


def _stfu8_character(char: str) -> str:
    if char in _STFU8_SHORT:
        return _STFU8_SHORT[char]
    point = ord(char)
    if point < 0x20 or point == 0x7F:
        return f"\\x{point:02X}"
    # A byte that is no UTF-8, as Python decodes it.
    return f"\\x{point - 0xDC00:02X}" if 0xDC80 <= point <= 0xDCFF else char


def _write_documents(head: str, documents: Iterable[dict[str, Any]], sink: IO[bytes]) -> None:
    """Write a list of documents that are made one by one, and close what `head` has opened."""
    sink.write(head.encode())
    separator = "\n  "
    for one in documents:
        sink.write((separator + json.dumps(one, ensure_ascii=False)).encode())
        separator = ",\n  "
    sink.write(b"\n]}\n")


def _path_fields(path: bytes) -> dict[str, str]:
    """Return a path for people, and in the form that loses nothing."""
    return {
        "absolute_path": display(path),
        "absolute_path_base64": base64.b64encode(path).decode(),
    }
