"""`mediaplane audit`: who called what that changes something."""

from typing import Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, enum_name, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

app = typer.Typer(name="audit", no_args_is_help=True, help="Show who changed what.")


@command(app, "list", examples=["mediaplane audit list --limit 20", "mediaplane audit list --json"])
def list_entries(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the calls that changed something or were refused, newest first."""
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        output.listing(
            operation.audit_entries(client, limit),
            noun="entries",
            columns=["WHEN", "CALLER", "ROLE", "TENANT", "KNOWN BY", "CALL", "RESOURCE", "RESULT"],
            cells=_cells,
            document=document,
            as_json=as_json,
            empty="Nothing has been changed yet.",
        )


def _cells(entry: Any) -> list[str]:
    return [
        local_time(entry, "call_time"),
        entry.caller,
        enum_name(entry, "role"),
        entry.tenant or "all",
        enum_name(entry, "peer"),
        entry.method,
        entry.resource,
        entry.code,
    ]
