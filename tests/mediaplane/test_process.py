"""A plane as a process: how it is told to stop."""

import subprocess
import sys

import pytest

SECONDS = 20

# A statement without end, in the main thread, which leaves no room for a handler in Python.
_SIGNALLED_IN_A_STATEMENT = """
import os, signal, sqlite3, threading
from mediaplane.process import stop_requested

stop = stop_requested(on_stdin_eof=False)

def leave():
    stop.wait()
    os._exit(0)

threading.Thread(target=leave, daemon=True).start()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
sqlite3.connect(":memory:").execute(endless)
"""

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


def test_a_signal_is_heard_while_the_main_thread_is_in_a_long_statement() -> None:
    script = [sys.executable, "-c", _SIGNALLED_IN_A_STATEMENT]
    assert subprocess.run(script, timeout=SECONDS, check=False).returncode == 0


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_is_heard_at_any_moment(number: str) -> None:
    script = _SIGNALLED_ON_THE_WAY.format(number=number, seconds=SECONDS)
    assert (
        subprocess.run([sys.executable, "-c", script], timeout=SECONDS, check=False).returncode == 0
    )
