"""`mediaplane worker`: the data-plane processes."""

from typing import Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, enum_name, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

app = typer.Typer(name="worker", no_args_is_help=True, help="Show who does the work.")


@command(app, "list", examples=["mediaplane worker list", "mediaplane worker list --json"])
def list_workers(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the data-plane processes that have reported, those that are offline included."""
    with session.client() as client:
        output.listing(
            client.workers(limit),
            noun="workers",
            columns=["WORKER", "STATE", "ASKED TO", "LAST SEEN", "STARTED"],
            cells=_cells,
            document=document,
            as_json=as_json,
            empty="No worker has reported yet.",
        )


def _cells(worker: Any) -> list[str]:
    asked = enum_name(worker, "command")
    return [
        last_part(worker.name),
        enum_name(worker, "state"),
        "" if asked == "none" else asked,
        local_time(worker, "last_seen_time"),
        local_time(worker, "start_time"),
    ]
