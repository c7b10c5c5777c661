"""The main function that both planes share."""

import logging
import os
import sys
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from mediaplane import serving, settings
from mediaplane.errors import UnusableDatabase, UnusableSettings
from mediaplane.locations import Locations
from mediaplane.protocol.database import explain

Settings = TypeVar("Settings")


def main(kind: type[Settings], run: Callable[..., None]) -> int:
    """Run a plane as a process: settings from the environment, errors as one line."""
    shown = logging.StreamHandler(sys.stderr)
    # A level of its own: loggers may be opened wider for a record that is kept in memory.
    shown.setLevel(logging.WARNING)
    logging.basicConfig(handlers=[shown], format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        chosen = settings.read(kind, os.environ)
        locations = Locations.from_environment(os.environ)
        stop = serving.stop_requested(on_stdin_eof=getattr(chosen, "exit_on_stdin_eof", False))
        run(locations, chosen, stop)
    except (UnusableDatabase, UnusableSettings) as error:
        print(f"mediaplane: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except OperationalError as error:
        print(f"mediaplane: The database does not answer: {explain(error)}", file=sys.stderr)  # noqa: T201
        return 1
    return 0
