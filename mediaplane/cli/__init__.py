"""The command line: `mediaplane`."""

import gc
import signal
import sys
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """Somebody sent a signal to end the program; stop as cleanly as on Ctrl-C."""


def main() -> NoReturn:
    """Run one command; 0 when it worked, 1 when it failed, 2 when it was not understood."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    # What is loaded stays to the end: to look for garbage in it took a sixth of a short command.
    gc.set_threshold(50_000)
    try:
        # Ctrl-C may come while these load.
        from mediaplane.cli.late import load_late  # noqa: PLC0415
        from mediaplane.cli.root import make_app  # noqa: PLC0415

        load_late()
        make_app(sys.argv[1:])(prog_name="mediaplane")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()
    sys.exit(0)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
