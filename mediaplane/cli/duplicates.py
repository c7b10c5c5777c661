"""`mediaplane duplicates`: files that are byte for byte the same."""

from typing import Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, file_document, last_part, library_of
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

app = typer.Typer(
    name="duplicates", no_args_is_help=True, help="Show files that are byte for byte the same."
)


@command(
    app,
    "list",
    examples=["mediaplane duplicates list --limit 20", "mediaplane duplicates list --json"],
)
def list_groups(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the groups of equal files, those with the most files first."""
    with session.client() as client:
        output.listing(
            client.duplicate_groups(limit),
            noun="groups",
            columns=[">FILES", ">TOTAL", ">RECLAIMABLE", "GROUP"],
            cells=_group_cells,
            document=document,
            as_json=as_json,
            empty="No duplicates. Are the libraries scanned and hashed? mediaplane up",
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
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the files of one group, across all libraries."""
    with session.client() as client:
        output.listing(
            client.duplicate_files(group, limit),
            noun="files",
            columns=["ID", "LIBRARY", ">SIZE", "PATH"],
            cells=_file_cells,
            document=file_document,
            as_json=as_json,
            empty="No file has this content.",
        )


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
        file.rel_path_display,
    ]
