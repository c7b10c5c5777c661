"""`mediaplane up`: everything at once, from a directory to its duplicates."""

import shlex
import shutil
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from mediaplane.cli import output, summary
from mediaplane.cli.library import absolute
from mediaplane.cli.output import Json
from mediaplane.cli.scan import AcceptNewRoot
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.client import Client


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "up",
        examples=[
            "mediaplane up ~/Pictures",
            "mediaplane up ~/Pictures /mnt/archive --once",
            "mediaplane up --once --json > summary.json",
        ],
    )(up)


def up(
    session: Session,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Directories to work on; all known libraries by default.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Exit when nothing is left to do.")] = False,
    accept_new_root: AcceptNewRoot = False,
    as_json: Json = False,
) -> None:
    """Scan directories and show the duplicates in them.

    Directories become libraries the first time. Running it again reads only what is new or
    changed. Nothing in the directories is changed. Stop it at any time with Ctrl-C; the next
    run goes on from there.
    """
    from mediaplane.cli import campaign  # noqa: PLC0415 - imports gRPC

    started = time.monotonic()
    with session.client(works=True) as client:
        libraries = campaign.find_libraries(client, [absolute(path) for path in paths or ()])
        failures = campaign.work(
            client, libraries, accept_new_root=accept_new_root, is_shown=not as_json
        )
        statistics = client.statistics()
        elapsed = time.monotonic() - started
        if as_json:
            output.json_document(summary.document(client, statistics, elapsed, failures))
        else:
            summary.show(statistics, elapsed)
        if not once:
            if not as_json:
                summary.show_groups(client, statistics)
            _serve(session, client)
    if failures:
        raise typer.Exit(1)


def _serve(session: Session, client: "Client") -> None:
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    # In full: the other terminal may be in another directory.
    state = f" --state {shlex.quote(str(session.locations.state))}" if session.state else ""
    program = "mediaplane" if shutil.which("mediaplane") else sys.argv[0]
    try:
        output.tell(
            f"\nServing at {client.control_address}. From another terminal:\n"
            f"  {program} duplicates list{state}\n"
            f"  {program} job list{state}\n"
            "Ctrl-C stops."
        )
        while not (stopped := _stopped_plane(session, client)):
            time.sleep(2)
    except KeyboardInterrupt:
        return
    raise CommandFailed(f"{stopped} has stopped; `mediaplane up` starts it again.")


def _stopped_plane(session: Session, client: "Client") -> str:
    from mediaplane.planes import is_serving  # noqa: PLC0415 - imports gRPC

    if not is_serving(client.control_address):
        return f"The control plane at {client.control_address}"
    # One that was told to shut down leaves nobody to do what is asked for.
    if not session.server_address and not is_serving(session.locations.data_address):
        return f"The data plane at {session.locations.data_address}"
    return ""
