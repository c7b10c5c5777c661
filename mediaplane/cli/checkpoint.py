"""`mediaplane db checkpoint`: carries SQLite's write-ahead log over into the database."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, enum_name, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command
from mediaplane.protocol.values import CheckpointMode

if TYPE_CHECKING:
    from mediaplane.client import Client

_LOOK_SECONDS = 0.2
_OPEN = frozenset({"pending", "running", "retryable"})

Mode = Annotated[
    CheckpointMode,
    typer.Option(
        "--mode",
        help="passive keeps nobody waiting; restart also has the log begin anew; truncate also"
        " cuts its file to nothing.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="At once, and truncate even a small log and while jobs are running."
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is complete.")]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait at most.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "checkpoint",
        examples=[
            "mediaplane db checkpoint",
            "mediaplane db checkpoint --mode truncate --force --wait",
        ],
    )(checkpoint)
    command(
        app,
        "checkpoints",
        examples=["mediaplane db checkpoints", "mediaplane db checkpoints --limit 5 --json"],
    )(list_checkpoints)


def checkpoint(
    session: Session,
    mode: Mode = CheckpointMode.PASSIVE,
    force: Force = False,
    wait: Wait = False,
    timeout_seconds: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Have a worker carry SQLite's write-ahead log over into the database.

    mediaplane does this by itself; by hand it is of use before a copy of the disk, or to see what
    keeps the log from shrinking. With --wait it exits with 1 when the checkpoint failed, or was
    not complete in time. PostgreSQL looks after its log alone.
    """
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client(works=wait) as client:
        asked = operation.request_checkpoint(client, mode, force=force)
        if wait:
            asked = _await(client, asked, timeout_seconds)
    if as_json:
        output.json_document({"checkpoint": document(asked)})
    else:
        output.say(_sentence(asked))
    if wait and enum_name(asked, "state") != "completed":
        raise typer.Exit(1)


def list_checkpoints(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the checkpoints of SQLite's write-ahead log, the newest first.

    FRAMES are those of the log that are in the database, of all in the log, at the last try.
    """
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    with session.client() as client:
        output.listing(
            operation.checkpoints(client, limit),
            noun="checkpoints",
            columns=["ID", "MODE", "STATE", ">TRIES", ">FRAMES", "ASKED FOR", "ENDED", "REMARK"],
            cells=_cells,
            document=document,
            as_json=as_json,
            empty="No checkpoints yet.",
        )


def _await(client: "Client", asked: Any, seconds: float) -> Any:
    from mediaplane import operation  # noqa: PLC0415 - imports gRPC

    ends_at = time.monotonic() + seconds
    while enum_name(asked, "state") in _OPEN and time.monotonic() < ends_at:
        time.sleep(_LOOK_SECONDS)
        asked = operation.checkpoint(client, asked.name)
    return asked


def _sentence(asked: Any) -> str:
    state, number = enum_name(asked, "state"), last_part(asked.name)
    told = f"Checkpoint {number} ({enum_name(asked, 'mode')}) is {state}"
    if state == "completed":
        return (
            f"{told}: {output.plural(asked.checkpointed_frames, 'frame')} of the log carried over."
        )
    if state == "pending":
        return f"{told}: it waits for its time, or for a worker (`mediaplane worker list`)."
    return f"{told}. {asked.error_message}".rstrip()


def _cells(asked: Any) -> list[str]:
    is_tried = asked.HasField("log_frames")
    tries = asked.retry_count + (enum_name(asked, "state") in {"running", "completed", "failed"})
    return [
        last_part(asked.name),
        enum_name(asked, "mode"),
        enum_name(asked, "state"),
        str(tries),
        f"{asked.checkpointed_frames} of {asked.log_frames}" if is_tried else "",
        local_time(asked, "create_time"),
        local_time(asked, "end_time"),
        asked.error_message,
    ]
