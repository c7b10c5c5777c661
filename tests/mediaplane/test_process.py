"""A plane as a process: how it is told to stop."""

import subprocess
import sys

import pytest

SECONDS = 20

# The main thread holds the event's lock for an instant on its way into waiting, and when it comes
# back; a signal may hit that instant.
_SIGNALLED_ON_THE_WAY = """
import signal
from mediaplane.process import stop_requested

stop = stop_requested(on_stdin_eof=False)
with stop._cond:
    signal.raise_signal(signal.{number})
raise SystemExit(not stop.wait({seconds}))
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_is_heard_at_any_moment(number: str) -> None:
    script = _SIGNALLED_ON_THE_WAY.format(number=number, seconds=SECONDS)
    assert (
        subprocess.run([sys.executable, "-c", script], timeout=SECONDS, check=False).returncode == 0
    )
