"""Forks processes on request: the interpreter and its imports are paid for once.

Reads one JSON document per line and answers with one: {"role": ..., "arguments": {...}} starts a
process and answers its id; {"wait": id} waits for its end and answers the code.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any

import psycopg  # noqa: F401 - for the forked: whoever uses PostgreSQL imports it late

from tests.faults import roles, scenarios

_PR_SET_PDEATHSIG = 1
_ROLES = (
    roles.work,
    roles.recover,
    roles.lock_out,
    roles.read_on,
    scenarios.work_mortally,
    scenarios.govern_mortally,
    scenarios.plan_mortally,
    scenarios.remove_mortally,
    scenarios.restore_mortally,
)
_BY_NAME: dict[str, Any] = {role.__name__: role for role in _ROLES}


def serve() -> None:
    """Answer until standard input ends; the forked end with this process."""
    # Inherited: who is told to stop before it listens to that hears of it then.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    for line in sys.stdin:
        order = json.loads(line)
        answer = _ended(order["wait"]) if "wait" in order else _fork(order)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _fork(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _BY_NAME[order["role"]](**order["arguments"])
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may return into the loop of the parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
