"""The root of the command line: global options and the order of the commands."""

from typing import Annotated

import typer

from mediaplane.cli import (
    asset,
    audit,
    cache,
    db,
    doctor,
    duplicates,
    file,
    job,
    library,
    planes,
    probe,
    scan,
    schedule,
    thumbnail,
    token,
    trash,
    up,
    verify,
    worker,
)
from mediaplane.cli.session import Server, Session, State, epilog

app = typer.Typer(
    name="mediaplane",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help: half the time to show, and it can be searched and copied.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=epilog(["mediaplane up ~/Pictures", "mediaplane duplicates list --limit 20"]),
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow

        try:
            typer.echo(f"mediaplane {version('mediaplane')}")
        except PackageNotFoundError:
            typer.echo("mediaplane (not installed)")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    state: State = None,
    server: Server = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Keeps large media libraries in order: finds every file and knows which are the same.

    With no server running, a command starts what it needs for its own duration. Nothing in a
    library is ever changed by looking at it.
    """
    del version  # shown by its callback
    ctx.obj = Session(state=state, server=server)


up.add_to(app)
app.add_typer(library.app)
app.add_typer(trash.app)
scan.add_to(app)
verify.add_to(app)
app.add_typer(file.app)
app.add_typer(asset.app)
app.add_typer(thumbnail.app)
app.add_typer(duplicates.app)
app.add_typer(cache.app)
probe.add_to(job.app)
app.add_typer(job.app)
app.add_typer(schedule.app)
app.add_typer(worker.app)
app.add_typer(token.app)
app.add_typer(audit.app)
app.add_typer(db.app)
doctor.add_to(app)
planes.add_to(app)
