"""`mediaplane trash`: libraries that were removed and can still come back."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import last_part, library_document, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.client import Client

app = typer.Typer(
    name="trash", no_args_is_help=True, help="Show removed libraries, and forget them for good."
)


@command(app, "list", examples=["mediaplane trash list", "mediaplane trash list --json"])
def list_trash(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the libraries in the trash; `mediaplane library restore` brings one back."""
    with session.client() as client:
        output.listing(
            client.libraries(limit, in_trash=True),
            noun="libraries",
            columns=["SLUG", "NAME", ">FILES", "REMOVED", "PATH"],
            cells=_cells,
            document=library_document,
            as_json=as_json,
            empty="The trash is empty.",
        )


@command(app, "empty", examples=["mediaplane trash empty", "mediaplane trash empty holidays --yes"])
def empty(
    session: Session,
    slug: Annotated[
        str, typer.Argument(metavar="SLUG", help="One library; all in the trash by default.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Forget libraries in the trash for good. No file of theirs is touched.

    What mediaplane knows of their files goes, a few thousand rows at a time, while everything
    else goes on. Interrupted, it goes on from there when run again.
    """
    with session.client() as client:
        chosen = _chosen(client, slug)
        if chosen and not yes:
            _ask(chosen)
        done = []
        for library in chosen:
            removed_rows = _purge(client, last_part(library.name))
            done.append({"slug": last_part(library.name), "removed_rows": removed_rows})
            if not as_json:
                output.say(
                    f"Forgot {last_part(library.name)}: {output.plural(removed_rows, 'row')}."
                    f" No file in {library.root_path_display} was touched."
                )
    if as_json:
        output.json_document({"libraries": done})
    elif not done:
        output.say(f"There is no {slug!r} in the trash." if slug else "The trash is empty.")


def _chosen(client: "Client", slug: str) -> list[Any]:
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    slug = slug.removeprefix("libraries/")
    found = [
        library
        for library in client.libraries(in_trash=True)
        if slug in ("", last_part(library.name))
    ]
    if not found and any(last_part(library.name) == slug for library in client.libraries()):
        raise CommandFailed(
            f"{slug} is not in the trash; move it there first: mediaplane library remove {slug}"
        )
    return found


def _ask(libraries: list[Any]) -> None:
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    names = ", ".join(last_part(library.name) for library in libraries)
    if not sys.stdin.isatty():
        raise CommandFailed(f"This forgets {names} for good; confirm it with --yes.")
    question = f"Forget all that is known of {names} for good? Their files stay as they are."
    typer.confirm(question, abort=True, err=True)


def _purge(client: "Client", slug: str) -> int:
    removed_rows = 0
    with _status() as show:
        for rows in client.purge_library(slug):
            removed_rows += rows
            show(f"Forgetting {slug}: {output.plural(removed_rows, 'row')}")
    return removed_rows


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done, and leave no trace of it."""
    if not sys.stderr.isatty():
        yield lambda _message: None
        return
    from rich.console import Console  # noqa: PLC0415 - a pipe does without

    with Console(stderr=True).status("") as status:
        yield status.update


def _cells(library: Any) -> list[str]:
    has_scan = library.HasField("last_scan")
    return [
        last_part(library.name),
        library.display_name,
        output.human_count(library.last_scan.seen_files) if has_scan else "",
        local_time(library, "delete_time"),
        library.root_path_display,
    ]
