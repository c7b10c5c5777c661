"""`mediaplane library`: the directories under care."""

import os
from typing import Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import (
    enum_name,
    last_part,
    library_document,
    local_time,
)
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command
from mediaplane.paths import display

app = typer.Typer(name="library", no_args_is_help=True, help="Add and show libraries.")

Slug = Annotated[
    str, typer.Argument(metavar="SLUG", help="The short name that `library list` shows.")
]


@command(
    app,
    "add",
    examples=[
        "mediaplane library add 'Holiday photos' ~/Pictures/holidays",
        "mediaplane library add Archive /mnt/archive --slug archive-2",
    ],
)
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for people.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="The directory with the files.")],
    slug: Annotated[
        str,
        typer.Option("--slug", help="The short name; made from NAME by default."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Put a directory under care. It is not read before the first scan."""
    root = absolute(path)
    if not session.server_address and not os.path.isdir(root):
        raise typer.BadParameter(f"{display(root)} is not a directory.", param_hint="PATH")
    with session.client() as client:
        library = client.add_library(name, root, slug)
    if as_json:
        output.json_document({"library": library_document(library)})
        return
    slug = last_part(library.name)
    output.say(f"Added {slug}: {library.root_path_display}")
    output.say(f"Next: mediaplane scan {slug}")


@command(app, "list", examples=["mediaplane library list", "mediaplane library list --json"])
def list_libraries(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the libraries."""
    with session.client() as client:
        output.listing(
            client.libraries(limit),
            noun="libraries",
            columns=["SLUG", "NAME", ">FILES", ">SIZE", "LAST SCAN", "PATH"],
            cells=_cells,
            document=library_document,
            as_json=as_json,
            empty="No library yet. Add one: mediaplane up PATH",
        )


@command(app, "show", examples=["mediaplane library show holidays"])
def show(session: Session, slug: Slug, as_json: Json = False) -> None:
    """Show one library and its last scan."""
    with session.client() as client:
        library = client.library(slug)
    if as_json:
        output.json_document({"library": library_document(library)})
        return
    output.record(
        [
            ("Slug", last_part(library.name)),
            ("Name", library.display_name),
            ("Path", library.root_path_display),
            ("Active", "yes" if library.is_active else "no, paused"),
            ("Status", enum_name(library, "scan_status")),
            ("Hashed files", enum_name(library, "hash_policy")),
            ("Hash algorithm", enum_name(library, "hash_algorithm")),
            ("Added", local_time(library, "create_time")),
            *(_scan_fields(library.last_scan) if library.HasField("last_scan") else ()),
        ]
    )


def absolute(path: str) -> bytes:
    """The absolute path in the bytes of the file system; symbolic links stay as they are."""
    found = os.fsencode(os.path.abspath(path))
    # POSIX lets two leading slashes mean something else; on Linux they do not.
    return b"/" + found.lstrip(b"/")


def _cells(library: Any) -> list[str]:
    has_scan = library.HasField("last_scan")
    scan = library.last_scan
    return [
        last_part(library.name),
        library.display_name,
        output.human_count(scan.seen_files) if has_scan else "",
        output.human_bytes(scan.seen_bytes) if has_scan else "",
        enum_name(scan, "state") if has_scan else "never",
        library.root_path_display,
    ]


def _scan_fields(scan: Any) -> list[tuple[str, str]]:
    state = enum_name(scan, "state")
    return [
        ("Last scan", f"{state}, began {local_time(scan, 'start_time')}"),
        ("Scan error", scan.error_message),
        ("Files", f"{output.human_count(scan.seen_files)}, {output.human_bytes(scan.seen_bytes)}"),
        ("New", output.human_count(scan.new_files)),
        ("Changed", output.human_count(scan.changed_files)),
        ("Missing", output.human_count(scan.missing_files)),
        ("Unreadable", output.human_count(scan.errored_files)),
    ]
