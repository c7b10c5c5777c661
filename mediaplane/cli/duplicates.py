"""`mediaplane duplicates`: files that are byte for byte the same."""

import os
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import Annotated, Any

import typer

from mediaplane.cli import output, saving
from mediaplane.cli.documents import document, file_document, last_part, library_of
from mediaplane.cli.export import DAMAGED, Format, export
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command
from mediaplane.cli.sizes import parse_size

app = typer.Typer(
    name="duplicates", no_args_is_help=True, help="Show files that are byte for byte the same."
)


class Sort(StrEnum):
    """What comes first."""

    COPIES = "copies"
    RECLAIMABLE = "reclaimable"


class MediaType(StrEnum):
    """What a file shows."""

    IMAGE = "image"
    VIDEO = "video"


SortOption = Annotated[
    Sort,
    typer.Option("--sort", help="First those with most files, or those that would free most."),
]
MinSize = Annotated[
    int | None,
    typer.Option(
        "--min-size",
        metavar="SIZE",
        parser=parse_size,
        help="Only of files with at least this size, such as 500, 4k or 2GiB.",
        show_default=False,
    ),
]
Library = Annotated[
    str,
    typer.Option(
        "--library", metavar="SLUG", help="Only groups with a file in this library.",
        show_default=False,
    ),
]  # fmt: skip
Folder = Annotated[
    str,
    typer.Option(
        "--path", metavar="FOLDER", help="Only groups with a file below this folder of --library.",
        show_default=False,
    ),
]  # fmt: skip
TypeOption = Annotated[
    MediaType | None,
    typer.Option("--type", help="Only pictures, or only videos.", show_default=False),
]


@command(
    app,
    "list",
    examples=[
        "mediaplane duplicates list --limit 20",
        "mediaplane duplicates list --sort reclaimable --min-size 1M",
        "mediaplane duplicates list --library holidays --path 2019/rome --type image --json",
    ],
)
def list_groups(
    session: Session,
    sort: SortOption = Sort.COPIES,
    min_size_bytes: MinSize = None,
    library: Library = "",
    folder: Folder = "",
    media_type: TypeOption = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the groups of equal files."""
    filters = _filters(min_size_bytes, library, folder, media_type)
    with session.client() as client:
        output.listing(
            client.duplicate_groups(limit, order=sort, **filters),
            noun="groups",
            columns=[">FILES", ">TOTAL", ">RECLAIMABLE", "GROUP"],
            cells=_group_cells,
            document=document,
            as_json=as_json,
            empty="No such duplicates."
            if filters
            else "No duplicates. Are the libraries scanned and hashed? mediaplane up",
        )


@command(
    app,
    "files",
    examples=[f"mediaplane duplicates files blake3:{'af1349b9' * 8}"],
)
def list_files(
    session: Session,
    group: Annotated[
        str,
        typer.Argument(metavar="GROUP", help="The key in the last column of `duplicates list`."),
    ],
    tenant: Annotated[
        str,
        typer.Option(
            "--tenant",
            help="Whose files, if you see every tenant; else all that you see.",
            show_default=False,
        ),
    ] = "",
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the files of one group, across all libraries of a tenant."""
    with session.client() as client:
        output.listing(
            client.duplicate_files(group, limit, tenant),
            noun="files",
            columns=["ID", "LIBRARY", ">SIZE", "STATUS", "PATH"],
            cells=_file_cells,
            document=file_document,
            as_json=as_json,
            empty="No file has this content.",
        )


@command(
    app,
    "export",
    examples=[
        "mediaplane duplicates export --format csv --output duplicates.csv",
        "mediaplane duplicates export --format fdupes --min-size 1M",
        "mediaplane duplicates export --format fclones | fclones link --dry-run",
    ],
)
def export_groups(
    session: Session,
    form: Annotated[Format, typer.Option("--format", help="What to write.")],
    target: Annotated[
        str,
        typer.Option(
            "--output", metavar="FILE",
            help="Where to write; by default -, the standard output.", show_default=False,
            callback=saving.checked,
        ),
    ] = "-",
    sort: SortOption = Sort.COPIES,
    min_size_bytes: MinSize = None,
    library: Library = "",
    folder: Folder = "",
    media_type: TypeOption = None,
) -> None:  # fmt: skip
    """Write the groups with all their files, by absolute path, for other programs.

    json and csv have each path twice: readable, and as base64 of the very bytes of its name.
    fdupes has one path a line in its very bytes, and an empty line after each group; in names a
    line break is written as \\n and a backslash as \\\\. fclones is a report that fclones remove
    and fclones link read; they leave alone what was modified since the last scan. Copies that
    `mediaplane verify` found damaged are left out.
    """
    filters = _filters(min_size_bytes, library, folder, media_type)
    with session.client() as client:
        saving.check_is_outside(client, target)
        groups = _begun(client.duplicate_groups(order=sort, **filters))
        with saving.opened(target) as sink:
            damaged = export(client, groups, form, sink)
    if damaged:
        were = "damaged copy was" if damaged == 1 else "damaged copies were"
        output.tell(
            f"{output.human_count(damaged)} {were} left out: mediaplane file list SLUG --errors"
        )


@command(
    app,
    "verify",
    examples=["mediaplane duplicates verify", "mediaplane duplicates verify --repair"],
)
def verify(
    session: Session,
    repair: Annotated[bool, typer.Option("--repair", help="Write anew what is wrong.")] = False,
    as_json: Json = False,
) -> None:
    """Compare the groups that are listed with the files themselves.

    Exits with 1 when something is wrong and was not repaired.
    """
    with session.client() as client:
        found = client.verify_duplicates(repair=repair)
    if as_json:
        output.json_document({"verification": document(found)})
    elif not found.wrong_groups:
        output.say(f"{output.plural(found.groups, 'group')}, all as the files say.")
    elif found.is_repaired:
        output.say(f"{output.plural(found.wrong_groups, 'wrong group')} written anew.")
    else:
        output.say(
            f"{output.plural(found.wrong_groups, 'wrong group')}."
            " Repair: mediaplane duplicates verify --repair"
        )
    if found.wrong_groups and not found.is_repaired:
        raise typer.Exit(1)


def _filters(
    min_size_bytes: int | None, library: str, folder: str, media_type: MediaType | None
) -> dict[str, Any]:
    """Return the filters that were given, as the client takes them."""
    if folder and not library:
        raise typer.BadParameter("name its library as well, with --library.", param_hint="--path")
    given = {
        "min_size_bytes": min_size_bytes,
        "library": library,
        "path_prefix": os.fsencode(folder),
        "media_type": media_type,
    }
    return {name: value for name, value in given.items() if value}


def _begun(groups: Iterator[Any]) -> Iterator[Any]:
    """Wait for the first group, so that what is refused leaves no trace."""
    return chain(list(islice(groups, 1)), groups)


def _group_cells(group: Any) -> list[str]:
    return [
        output.human_count(group.file_count),
        output.human_bytes(group.total_size_bytes),
        output.human_bytes(group.reclaimable_bytes),
        group.group_key,
    ]


def _file_cells(file: Any) -> list[str]:
    return [
        last_part(file.name),
        library_of(file),
        output.human_bytes(file.size_bytes),
        "damaged" if file.error_code == DAMAGED else file.error_code,
        file.rel_path_display,
    ]
