"""What every command shares: the global options, the way to a client, and the end of errors."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from mediaplane.cli import Terminated, output
from mediaplane.paths import display

if TYPE_CHECKING:
    from mediaplane.client import Client
    from mediaplane.locations import Locations

State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Where the database and everything derived is kept"
        " (MEDIAPLANE_STATE; else ~/.local/state/mediaplane).",
        show_default=False,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="ADDRESS",
        help="Use the control plane at host:port or unix:/path and start none (MEDIAPLANE_SERVER).",
        show_default=False,
    ),
]


@dataclass
class Session:
    """The global options of one run."""

    state: str | None = None
    server: str | None = None

    @property
    def server_address(self) -> str | None:
        return self.server or os.environ.get("MEDIAPLANE_SERVER") or None

    @property
    def locations(self) -> "Locations":
        from mediaplane.locations import Locations  # noqa: PLC0415 - imports gRPC

        return Locations.from_environment(os.environ, self.state)

    @contextmanager
    def client(self, *, works: bool = False) -> "Iterator[Client]":
        """Connect to the planes; with `works`, to a data plane that carries out jobs as well."""
        # Importing gRPC takes longer than the whole of --help.
        from mediaplane import client, planes  # noqa: PLC0415
        from mediaplane.credentials import Credentials  # noqa: PLC0415

        with ExitStack() as stack:
            if self.server_address:
                data_address = os.environ.get("MEDIAPLANE_DATA_ADDRESS")
                stack.enter_context(client.translated(self.server_address))
                known = Credentials.from_environment(os.environ)
                yield stack.enter_context(client.Client(self.server_address, data_address, known))
                return
            locations = self.locations
            needed = [planes.control_plane(locations)]
            if works:
                needed.append(planes.data_plane(locations))
            with output.busy("Starting ..."):
                stack.enter_context(planes.running(needed))
            hint = f"a plane has stopped; its log is in {locations.logs}."
            control = locations.local_control_address
            stack.enter_context(client.translated(control, hint))
            yield stack.enter_context(client.Client(control, locations.local_data_address))


def command(
    app: typer.Typer, name: str, *, examples: list[str], talks: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function as a command: with the global options, examples, and errors made readable.

    The function gets a `Session` first. `talks` says that it speaks to a server.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def run(ctx: typer.Context, **arguments: Any) -> None:
            session: Session = ctx.find_root().obj or Session()
            session.state = arguments.pop("state", None) or session.state
            session.server = arguments.pop("server", None) or session.server
            _carry_out(lambda: function(session, **arguments))

        run.__doc__ = function.__doc__
        setattr(run, "__signature__", _signature(function, talks=talks))  # noqa: B010
        app.command(name, epilog=epilog(examples))(run)
        return function

    return register


def _signature(function: Callable[..., None], *, talks: bool) -> inspect.Signature:
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(parameter.replace(kind=keyword) for parameter in own),
        inspect.Parameter("state", keyword, default=None, annotation=State),
    ]
    if talks:
        parameters.append(inspect.Parameter("server", keyword, default=None, annotation=Server))
    return inspect.Signature(parameters)


def epilog(examples: list[str]) -> str:
    """The examples below a help text; the control character keeps the lines as they are."""
    title = "Example:" if len(examples) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {example}" for example in examples)])


def _carry_out(work: Callable[[], None]) -> None:
    try:
        work()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has what it wanted. The interpreter must not flush into the pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except Terminated:
        raise typer.Exit(143) from None
    except KeyboardInterrupt:
        output.tell("Interrupted.")
        raise typer.Exit(130) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:  # noqa: BLE001 - the edge: people get a sentence, not a trace
        _explain(error)


def _explain(error: Exception) -> NoReturn:
    from mediaplane import client, errors  # noqa: PLC0415 - only a failed command needs them

    expected = (client.CommandFailed, errors.UnusableDatabase, errors.UnusableSettings, OSError)
    if isinstance(error, expected):
        output.tell(f"Error: {error}")
    elif type(error).__module__ == "sqlalchemy.exc" and type(error).__name__ == "OperationalError":
        # By name: importing SQLAlchemy takes long, and most failures have nothing to do with it.
        from mediaplane.protocol.database import explain  # noqa: PLC0415

        output.tell(f"Error: The database cannot be used: {explain(cast(Any, error))}")
    elif os.environ.get("MEDIAPLANE_DEBUG"):
        raise error
    elif isinstance(error, UnicodeEncodeError):  # an argument, as nothing else has such bytes
        shown = display(os.fsencode(error.object))
        raise typer.BadParameter(
            f"{shown} is not UTF-8, as names and patterns have to be; in a pattern, ? stands for"
            " such a byte."
        )
    else:
        output.tell(
            f"Internal error: {type(error).__name__}: {error}\n"
            "This is a bug; MEDIAPLANE_DEBUG=1 shows where it happened."
        )
    raise typer.Exit(1)
