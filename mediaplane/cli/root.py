"""The root of the command line: global options and the order of the commands."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from mediaplane.cli.session import Server, Session, State, epilog

# The commands and groups of commands in the order of --help, and the module of each.
_MODULES = {
    "up": "up",
    "library": "library",
    "trash": "trash",
    "scan": "scan",
    "hash": "scan",
    "verify": "verify",
    "file": "file",
    "asset": "asset",
    "thumbnail": "thumbnail",
    "duplicates": "duplicates",
    "cache": "cache",
    "job": "job",
    "schedule": "schedule",
    "worker": "worker",
    "token": "token",
    "audit": "audit",
    "db": "db",
    "doctor": "doctor",
    "control-plane": "planes",
    "data-plane": "planes",
}


def make_app(words: Sequence[str] = ()) -> typer.Typer:
    """The command line for these words: the command that they begin with, else all commands.

    To load all of them takes longer than most commands take for the rest.
    """
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
    app.callback()(_root)
    named = _MODULES.get(words[0]) if words else None
    for name in [named] if named else dict.fromkeys(_MODULES.values()):
        module = import_module(f"mediaplane.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app)
        else:
            module.add_to(app)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow

        try:
            typer.echo(f"mediaplane {version('mediaplane')}")
        except PackageNotFoundError:
            typer.echo("mediaplane (not installed)")
        raise typer.Exit


def _root(
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
