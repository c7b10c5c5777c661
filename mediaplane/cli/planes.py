"""`mediaplane control-plane` and `mediaplane data-plane`: the servers in the foreground."""

import os
from typing import TYPE_CHECKING, NoReturn

import typer

from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.planes import Plane


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "control-plane",
        examples=["mediaplane control-plane", "mediaplane control-plane --state /var/lib/media"],
        talks=False,
    )(control_plane)
    command(
        app,
        "data-plane",
        examples=["mediaplane data-plane", "mediaplane data-plane --state /var/lib/media"],
        talks=False,
    )(data_plane)


def control_plane(session: Session) -> None:
    """Run the control plane in the foreground.

    It answers queries and hands out work. It listens at MEDIAPLANE_CONTROL_ADDRESS, a socket in
    the state directory by default. Bring the database up to date first: mediaplane db upgrade
    """
    from mediaplane import planes  # noqa: PLC0415 - imports gRPC

    _become(planes.control_plane(session.locations))


def data_plane(session: Session) -> None:
    """Run a data plane in the foreground.

    It reads the files and does the work, which it finds in the database. It listens at
    MEDIAPLANE_DATA_ADDRESS, a socket in the state directory by default.
    """
    from mediaplane import planes  # noqa: PLC0415 - imports gRPC

    _become(planes.data_plane(session.locations))


def _become(plane: "Plane") -> NoReturn:
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC
    from mediaplane.planes import command_line, is_serving  # noqa: PLC0415

    # gRPC would take the socket away from a server that uses it.
    if is_serving(plane.address):
        raise CommandFailed(f"A {plane.name} serves at {plane.address} already.")
    plane.locations.prepare()
    arguments = command_line(plane.module)
    environment = os.environ | plane.locations.environment()
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - becoming it is the point
