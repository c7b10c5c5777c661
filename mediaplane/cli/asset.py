"""`mediaplane asset`: the images and videos of a library."""

from typing import Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import enum_name, file_document, last_part
from mediaplane.cli.library import Slug
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

app = typer.Typer(name="asset", no_args_is_help=True, help="Show images and videos.")


@command(
    app,
    "list",
    examples=["mediaplane asset list holidays", "mediaplane asset list holidays --json"],
)
def list_assets(session: Session, slug: Slug, limit: Limit = None, as_json: Json = False) -> None:
    """List the images and videos of a library and how far each is processed."""
    with session.client() as client:
        output.listing(
            client.assets(slug, limit),
            noun="assets",
            columns=["ID", "TYPE", "STATE", ">SIZE", "PATH"],
            cells=_cells,
            document=file_document,
            as_json=as_json,
            empty="No image or video. Scan the library first?",
        )


def _cells(asset: Any) -> list[str]:
    return [
        last_part(asset.name),
        enum_name(asset, "type"),
        enum_name(asset, "state"),
        output.human_bytes(asset.size_bytes),
        asset.rel_path_display,
    ]
