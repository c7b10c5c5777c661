"""`mediaplane up`: everything at once, from a directory to its duplicates."""

import os
import shlex
import shutil
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output, summary
from mediaplane.cli.arguments import AcceptNewRoot, absolute
from mediaplane.cli.documents import last_part
from mediaplane.cli.output import Json
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.cli.watch import Watcher
    from mediaplane.client import Client


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "up",
        examples=[
            "mediaplane up ~/Pictures",
            "mediaplane up ~/Pictures --watch",
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
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on and rescan what changes, until Ctrl-C.")
    ] = False,
    watch_interval: Annotated[
        float | None,
        typer.Option(
            "--watch-interval",
            metavar="SECONDS",
            min=1,
            help="With --watch: rescan this often, in place of being told of changes by the system"
            " (60 where it cannot tell, as on network file systems).",
            show_default=False,
        ),
    ] = None,
    no_media: Annotated[
        bool,
        typer.Option(
            "--no-media",
            help="Make no thumbnails and proxies now. While it runs on, none are made for other"
            " commands either.",
        ),
    ] = False,
    accept_new_root: AcceptNewRoot = False,
    as_json: Json = False,
) -> None:
    """Scan directories, show the duplicates in them, and make thumbnails and proxies.

    Directories become libraries the first time. Running it again reads only what is new or
    changed. Nothing in the directories is changed. Stop it at any time with Ctrl-C; the next
    run goes on from there.
    """
    _check_watch(session, watch=watch, watch_interval=watch_interval, once=once)
    from mediaplane.cli import campaign, pipeline  # noqa: PLC0415 - imports gRPC

    if no_media:
        os.environ.update(pipeline.WITHOUT_MEDIA)  # of which a data plane to be started learns
    started = time.monotonic()
    with session.client(works=True) as client:
        libraries = campaign.find_libraries(client, [absolute(path) for path in paths or ()])
        # Before the scan: what changes behind its back is for the next one.
        watcher = (
            _watcher(session, client, libraries, watch_interval, as_json=as_json) if watch else None
        )
        failures = campaign.work(
            client, libraries, accept_new_root=accept_new_root, is_shown=not as_json
        )
        slugs = [last_part(library.name) for library in libraries]
        # What lies in a library that cannot be scanned will not be decoded either.
        lost = {failure.partition(":")[0] for failure in failures}
        scanned = [slug for slug in slugs if slug not in lost]
        media = None
        if not (no_media or watch):  # who watches wants to hear of changes meanwhile
            media = pipeline.finish(client, scanned, is_shown=not as_json)
        if media is None or scanned != slugs:
            media = pipeline.current(client, slugs)
        statistics = client.statistics()
        elapsed = time.monotonic() - started
        if as_json:
            write = output.json_line if watch else output.json_document
            write(summary.document(client, statistics, media, elapsed, failures))
        else:
            summary.show(client, statistics, media, elapsed)
        if not once:
            if not as_json:
                summary.show_groups(client, statistics)
            _serve(session, client, watcher)
    if failures:
        raise typer.Exit(1)


def _check_watch(
    session: Session, *, watch: bool, watch_interval: float | None, once: bool
) -> None:
    if watch and once:
        raise typer.BadParameter("--once ends what --watch keeps up; give one of them.")
    if watch_interval and not watch:
        raise typer.BadParameter(
            "it is for --watch; give that as well.", param_hint="--watch-interval"
        )
    if watch and session.server_address:
        raise typer.BadParameter(
            f"the server at {session.server_address} may be on another machine, whose directories"
            " cannot be watched from here; run it there, without --server and MEDIAPLANE_SERVER.",
            param_hint="--watch",
        )


def _watcher(
    session: Session,
    client: "Client",
    libraries: list[Any],
    interval_seconds: float | None,
    *,
    as_json: bool,
) -> "Watcher":
    from mediaplane.cli.watch import Watcher  # noqa: PLC0415 - imports gRPC

    return Watcher(
        client,
        libraries,
        state=session.locations.state,
        interval_seconds=interval_seconds,
        as_json=as_json,
    )


def _serve(session: Session, client: "Client", watcher: "Watcher | None") -> None:
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    # In full: the other terminal may be in another directory.
    state = f" --state {shlex.quote(str(session.locations.state))}" if session.state else ""
    program = "mediaplane" if shutil.which("mediaplane") else sys.argv[0]
    try:
        output.tell(
            f"\nServing at {client.control_address}. From another terminal:\n"
            f"  {program} duplicates list{state}\n"
            f"  {program} job list{state}\n"
            f"{'What changes is scanned again. ' if watcher else ''}Ctrl-C stops."
        )
        while not (stopped := _stopped_plane(session, client)):
            if watcher:
                watcher.rescan_changed()
            time.sleep(1)
    except KeyboardInterrupt:
        return
    raise CommandFailed(f"{stopped} has stopped; `mediaplane up` starts it again.")


def _stopped_plane(session: Session, client: "Client") -> str:
    from mediaplane.planes import is_serving  # noqa: PLC0415 - imports gRPC

    if not is_serving(client.control_address):
        return f"The control plane at {client.control_address}"
    # One that was told to shut down leaves nobody to do what is asked for.
    if not session.server_address and not is_serving(session.locations.local_data_address):
        return f"The data plane at {session.locations.local_data_address}"
    return ""
