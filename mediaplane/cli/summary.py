"""The figures at the end of `mediaplane up`."""

from itertools import islice
from typing import TYPE_CHECKING, Any

from mediaplane.cli import output
from mediaplane.cli.documents import document as plain
from mediaplane.cli.documents import last_part, library_document, library_of

if TYPE_CHECKING:
    from mediaplane.cli.pipeline import Media
    from mediaplane.client import Client

_SHOWN_GROUPS = 20
_SHOWN_FILES = 4


def document(
    client: "Client",
    statistics: Any,
    media: "Media",
    elapsed_seconds: float,
    failures: list[str],
) -> dict[str, Any]:
    """The summary as one JSON document."""
    figures = plain(statistics)
    totals = {last_part(row["library"]): row for row in figures["libraries"]}
    return {
        "files": statistics.files,
        "bytes": statistics.bytes,
        "groups": statistics.groups,
        "duplicate_files": statistics.duplicate_files,
        "grouped_files": statistics.grouped_files,
        "reclaimable_bytes": statistics.reclaimable_bytes,
        "errors": statistics.errors,
        "media": media._asdict(),
        "failures": failures,
        "elapsed_seconds": round(elapsed_seconds, 3),
        "libraries": [
            _library(library_document(library), totals) for library in client.libraries()
        ],
        "database": figures["database"],
    }


def show(client: "Client", statistics: Any, media: "Media", elapsed_seconds: float) -> None:
    """The summary for people."""
    files = output.plural(statistics.files, "file")
    copies = output.plural(statistics.duplicate_files, "extra copy", "extra copies")
    groups = output.plural(statistics.groups, "group")
    output.record(
        [
            ("Found", f"{files}, {output.human_bytes(statistics.bytes)}"),
            ("Duplicates", f"{copies} in {groups}"),
            ("Reclaimable", output.human_bytes(statistics.reclaimable_bytes)),
            ("Media", _media(media)),
            ("Errors", output.human_count(statistics.errors)),
            ("Time", output.human_seconds(elapsed_seconds)),
        ]
    )
    for library in statistics.libraries:
        slug = last_part(library.library)
        if library.errors:
            output.say(
                f"{output.plural(library.errors, 'file')} could not be read:"
                f" mediaplane file list {slug} --errors"
            )
        if media.failed_assets and (failed := _failed_assets(client, slug)):
            output.say(
                f"{output.plural(failed, 'image or video', 'images and videos')} could not be"
                f" processed: mediaplane asset list {slug} --only failed"
            )


def show_groups(client: "Client", statistics: Any) -> None:
    """The largest groups, with some of their files."""
    for group in client.duplicate_groups(_SHOWN_GROUPS):
        output.say()
        output.say(
            f"{output.plural(group.file_count, 'file')} of {output.human_bytes(group.size_bytes)},"
            f" {output.human_bytes(group.reclaimable_bytes)} reclaimable"
        )
        output.say(f"  {group.group_key}")
        files = client.duplicate_files(group.group_key, _SHOWN_FILES, group.tenant)
        for file in islice(files, _SHOWN_FILES):
            output.say(f"    {library_of(file)}: {file.rel_path_display}")
        if group.file_count > _SHOWN_FILES:
            output.say(f"    and {output.human_count(group.file_count - _SHOWN_FILES)} more")
    if statistics.groups > _SHOWN_GROUPS:
        output.say()
        output.say(f"and {output.human_count(statistics.groups - _SHOWN_GROUPS)} more groups")


def _failed_assets(client: "Client", slug: str) -> int:
    """How many images and videos of a library could not be processed."""
    from mediaplane.media import pipeline  # noqa: PLC0415 - imports gRPC

    return pipeline(client, [slug]).failed_assets


def _media(media: "Media") -> str:
    """'1 failed, 12 waiting'; '' where there is nothing to say."""
    numbers = zip(("failed", "waiting"), media, strict=True)
    return ", ".join(f"{output.human_count(number)} {what}" for what, number in numbers if number)


def _library(library: dict[str, Any], totals: dict[str, dict[str, Any]]) -> dict[str, Any]:
    figures = totals.get(library["slug"], {})
    return {**library, **{key: figures.get(key, 0) for key in ("files", "bytes", "errors")}}
