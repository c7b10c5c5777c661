"""The command line: `mediaplane`."""

import atexit
import gc
import os
import signal
import sys
import threading
from contextlib import suppress
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
        _leave(130)
    except SystemExit as end:
        _leave(end.code)
    _leave(0)


def _leave(code: str | int | None) -> NoReturn:
    """End the program without taking apart all that it has loaded, which takes a while."""
    gc.freeze()
    if isinstance(code, int) and threading.active_count() == 1:
        atexit._run_exitfuncs()  # noqa: SLF001 - spans are sent there, and there is no other way
        with suppress(OSError, ValueError, AttributeError):  # full, closed, or never there
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)  # which waits for threads, and says what could not be written


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
