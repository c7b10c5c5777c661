"""`mediaplane worker`: the data-plane processes, and what they are told to do."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, enum_name, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.client import Client

app = typer.Typer(name="worker", no_args_is_help=True, help="Show and steer who does the work.")

WorkerId = Annotated[
    str | None,
    typer.Argument(
        metavar="[WORKER]",
        help="The id that `worker list` shows, or as much of its beginning as only one has.",
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Tell every worker that is not offline.")]

_CONSEQUENCES = {
    "pause": "will finish what it has in hand and then pause.",
    "resume": "will take work again.",
    "shutdown": "will finish what it has in hand and then exit.",
    "forensic_dump": "will write its flight log to logs/forensics in its state directory.",
}


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


@command(
    app, "pause", examples=["mediaplane worker pause myhost-3f2a", "mediaplane worker pause --all"]
)
def pause(
    session: Session, worker: WorkerId = None, every: All = False, as_json: Json = False
) -> None:
    """Have a worker finish what it has in hand and then take no more work.

    It still carries SQLite's log over, which keeps no work waiting.
    """
    _tell(session, "pause", worker, every=every, as_json=as_json)


@command(
    app,
    "resume",
    examples=["mediaplane worker resume myhost-3f2a", "mediaplane worker resume --all"],
)
def resume(
    session: Session, worker: WorkerId = None, every: All = False, as_json: Json = False
) -> None:
    """Have a paused worker take work again."""
    _tell(session, "resume", worker, every=every, as_json=as_json)


@command(
    app,
    "shutdown",
    examples=["mediaplane worker shutdown myhost-3f2a", "mediaplane worker shutdown --all --json"],
)
def shutdown(
    session: Session, worker: WorkerId = None, every: All = False, as_json: Json = False
) -> None:
    """Have a worker finish what it has in hand and then exit."""
    _tell(session, "shutdown", worker, every=every, as_json=as_json)


@command(
    app, "dump", examples=["mediaplane worker dump myhost-3f2a", "mediaplane worker dump --all"]
)
def dump(
    session: Session, worker: WorkerId = None, every: All = False, as_json: Json = False
) -> None:
    """Have a worker write its flight log: what it did last, in detail.

    The file appears in logs/forensics in the state directory of the worker's machine.
    """
    _tell(session, "forensic_dump", worker, every=every, as_json=as_json)


def _tell(session: Session, wanted: str, worker: str | None, *, every: bool, as_json: bool) -> None:
    given = (worker or "").removeprefix("workers/")
    if bool(given) == every:
        raise typer.BadParameter("give one WORKER, or --all for all of them.", param_hint="WORKER")
    with session.client() as client:
        told = [client.command_worker(one, wanted) for one in _chosen(client, given)]
    if as_json:
        output.json_listing("workers", map(document, told))
        return
    for one in told:
        output.say(f"{last_part(one.name)} {_CONSEQUENCES[wanted]}")


def _chosen(client: "Client", given: str) -> list[str]:
    """Return the one id that was meant, or those of all workers that run when none was given."""
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    states = {last_part(worker.name): enum_name(worker, "state") for worker in client.workers()}
    if given in states:
        return [given]  # the server says why when it cannot be told anything
    running = [worker_id for worker_id, state in states.items() if state != "offline"]
    if not running:
        raise CommandFailed(
            "No worker is running. `mediaplane up` and `mediaplane data-plane` start one."
        )
    found = [worker_id for worker_id in running if worker_id.startswith(given)]
    if not found:
        raise CommandFailed(
            f"No running worker's id begins with {given!r}; `mediaplane worker list` shows them."
        )
    if given and len(found) > 1:
        raise CommandFailed(
            f"{given!r} may be any of {len(found)} workers; give more of the id of one of them:\n"
            + "\n".join(f"  {worker_id}" for worker_id in found)
        )
    return found


def _cells(worker: Any) -> list[str]:
    asked = enum_name(worker, "command")
    return [
        last_part(worker.name),
        enum_name(worker, "state"),
        "" if asked == "none" else asked,
        local_time(worker, "last_seen_time"),
        local_time(worker, "start_time"),
    ]
