"""Writes duplicate groups with their files for other programs, one group after the other."""

import base64
import codecs
import csv
import json
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from mediaplane.cli.documents import document, library_of
from mediaplane.paths import display

if TYPE_CHECKING:
    from mediaplane.client import Client


class Format(StrEnum):
    """What an export looks like."""

    JSON = "json"
    CSV = "csv"
    FDUPES = "fdupes"


class Copy(NamedTuple):
    """One file of a group; its path is absolute, in the bytes of the file system."""

    library: str
    path: bytes


Export = Iterable[tuple[Any, list[Copy]]]


def export(client: "Client", groups: Iterable[Any], form: Format, sink: IO[bytes]) -> None:
    """Write groups as they come in; no more than one is held in memory."""
    writers = {Format.JSON: _write_json, Format.CSV: _write_csv, Format.FDUPES: _write_fdupes}
    writers[form](_with_copies(client, groups), sink)


def _with_copies(client: "Client", groups: Iterable[Any]) -> Iterator[tuple[Any, list[Copy]]]:
    @cache
    def root(slug: str) -> bytes:
        return client.library(slug).root_path

    for group in groups:
        files = client.duplicate_files(group.group_key)
        copies = [
            Copy(library_of(file), os.path.join(root(library_of(file)), file.rel_path))
            for file in files
        ]
        # Files may have vanished since the group was listed; one alone is no duplicate.
        if len(copies) > 1:
            yield group, copies


def _write_json(found: Export, sink: IO[bytes]) -> None:
    sink.write(b'{"groups": [')
    separator = "\n  "
    for group, copies in found:
        files = [{"library": copy.library, **_path_fields(copy.path)} for copy in copies]
        text = json.dumps({**document(group), "files": files}, ensure_ascii=False)
        sink.write((separator + text).encode())
        separator = ",\n  "
    sink.write(b"\n]}\n")


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


def _path_fields(path: bytes) -> dict[str, str]:
    """Return a path for people, and in the form that loses nothing."""
    return {
        "absolute_path": display(path),
        "absolute_path_base64": base64.b64encode(path).decode(),
    }
