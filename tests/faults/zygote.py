"""Real processes that start in milliseconds: forked from one that has imported everything."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Zygote:
    """The process that forks; who was forked stays its child until it is waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._alive: set[int] = set()

    def start(self, role: str, **arguments: Any) -> int:
        """Start a process in a role of tests/faults/roles.py, and return its id."""
        pid = self._ask({"role": role, "arguments": arguments})
        self._alive.add(pid)
        return pid

    def wait(self, pid: int) -> int:
        """Wait for the end of a process and return its code, negative for a signal."""
        self._alive.discard(pid)
        return self._ask({"wait": pid})

    def kill(self, pid: int) -> bool:
        """Kill a process; False when it had ended before by itself."""
        os.kill(pid, signal.SIGKILL)
        return self.wait(pid) == -signal.SIGKILL

    def end(self, pid: int) -> None:
        """Ask a process to stop and expect that it does so in order."""
        os.kill(pid, signal.SIGTERM)
        assert self.wait(pid) == 0

    def clear(self) -> None:
        """Kill whoever a test that failed has left running."""
        for pid in list(self._alive):
            self.kill(pid)

    def _ask(self, order: dict[str, Any]) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def running_zygote(**environment: str) -> Iterator[Zygote]:
    """Start a process that forks; at the end it takes along whoever is left."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MEDIAPLANE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.forks"],
        cwd=ROOT,
        env=kept | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Zygote(process)
    finally:
        process.kill()
        process.communicate()
