"""`mediaplane file`: every file of a library."""

from itertools import chain
from typing import Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.arguments import Slug
from mediaplane.cli.documents import document, file_document
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

app = typer.Typer(name="file", no_args_is_help=True, help="Show the files of a library.")


@command(
    app,
    "list",
    examples=[
        "mediaplane file list holidays --limit 20",
        "mediaplane file list holidays --errors",
        "mediaplane file list holidays --missing --json",
    ],
)
def list_files(
    session: Session,
    slug: Slug,
    errors: Annotated[
        bool,
        typer.Option("--errors", help="Only what could not be read or hashed, with the reason."),
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Also files that the last scan did not find.")
    ] = False,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the files of a library, as the last scan found them."""
    with session.client() as client:
        files = client.files(slug, has_error=errors, include_missing=missing, limit=limit)
        # Also what the scan could not look at, such as a folder without permission.
        unseen = client.scan_errors(slug, limit) if errors else ()
        if errors and as_json:
            output.json_document(
                {
                    "files": [file_document(file) for file in files],
                    "scan_errors": [document(error) for error in unseen],
                }
            )
            return
        output.listing(
            chain(files, unseen),
            noun="files",
            columns=["ID", ">SIZE", "STATUS", "PATH"],
            cells=_cells,
            document=file_document,
            as_json=as_json,
            empty="No file with an error." if errors else "No file. Scan the library first?",
        )


def _cells(file: Any) -> list[str]:
    if not hasattr(file, "size_bytes"):
        return ["", "", file.error_message, file.rel_path_display]
    number = file.name.rpartition("/")[2]
    return [number, output.human_bytes(file.size_bytes), _status(file), file.rel_path_display]


def _status(file: Any) -> str:
    if file.is_missing:
        return "missing"
    if file.error_code:
        return str(file.error_message or file.error_code)
    if file.content_hash:
        return "hashed"
    return "to be hashed" if file.needs_hash else "not hashed"
