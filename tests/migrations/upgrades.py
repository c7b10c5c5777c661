"""Upgrades in processes of their own, to be killed or raced.

Importing takes longer than upgrading, so one process imports and every upgrade is a fork of it.
"""

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
READS = ("SELECT", "PRAGMA")
LOCKS = ("BEGIN IMMEDIATE", "pg_advisory_xact_lock")


class Upgrades:
    """The test's end: asks the other process for upgrades."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.migrations.upgrades"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def changes(self, url: str) -> list[str]:
        """Upgrade, and return the statements and commits that changed something."""
        answer = self._ask("upgrade", url=url)
        assert answer["exit"] == 0
        changes: list[str] = answer["changes"]
        return changes

    def kill_before(self, change: int, url: str) -> int:
        """Upgrade with SIGKILL before the given change; return how the process ended."""
        return int(self._ask("kill", url=url, change=change)["exit"])

    def race(self, url: str) -> list[int]:
        """Start an upgrade in the middle of another; return how each of the two ended."""
        exits: list[int] = self._ask("race", url=url)["exits"]
        return exits

    def _ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"what": what} | arguments) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def serve() -> None:
    """The other end: reads requests, forks, and tells what became of it."""
    for line in sys.stdin:
        request = json.loads(line)
        run = REQUESTS[request.pop("what")]
        sys.stdout.write(json.dumps(run(**request)) + "\n")
        sys.stdout.flush()


def run_recorded(url: str) -> dict[str, Any]:
    reading, writing = os.pipe()

    def upgrade() -> None:
        with os.fdopen(writing, "w") as pipe:
            before_each_change(lambda change: pipe.write(json.dumps(change) + "\n"))
            run_upgrade(url)

    child = fork(upgrade)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        changes = [json.loads(line) for line in pipe]
    return {"exit": exit_of(child), "changes": changes}


def run_killed(url: str, change: int) -> dict[str, Any]:
    def upgrade() -> None:
        left = change

        def kill(_statement: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        before_each_change(kill)
        run_upgrade(url)

    return {"exit": exit_of(fork(upgrade))}


def run_raced(url: str) -> dict[str, Any]:
    """The first stops within a transaction until the second is about to ask for its lock."""
    first_is_inside, tell_inside = os.pipe()
    second_is_at_lock, tell_at_lock = os.pipe()

    def first() -> None:
        os.close(tell_at_lock)

        def pause(statement: str) -> None:
            if "CREATE TABLE jobs" in statement:
                os.write(tell_inside, b"x")
                # Ends also with a second that asks for no lock.
                select.select([second_is_at_lock], [], [], 180)

        before_each_change(pause)
        run_upgrade(url)

    def second() -> None:
        os.close(tell_inside)

        def tell(statement: str) -> None:
            if any(lock in statement for lock in LOCKS):
                os.write(tell_at_lock, b"x")

        before_each_statement(tell)
        is_inside = os.read(first_is_inside, 1)
        assert is_inside
        run_upgrade(url)

    children = [fork(first), fork(second)]
    for pipe in (first_is_inside, tell_inside, second_is_at_lock, tell_at_lock):
        os.close(pipe)
    return {"exits": [exit_of(child) for child in children]}


def run_upgrade(url: str) -> None:
    from mediaplane.protocol import migration

    migration.upgrade(url)


def before_each_statement(act: Callable[[str], object]) -> None:
    from sqlalchemy import Engine, event

    event.listen(Engine, "before_cursor_execute", lambda *given: act(given[2]))


def before_each_change(act: Callable[[str], object]) -> None:
    """A kill before a read leaves what a kill before the next change leaves."""
    from sqlalchemy import Engine, event

    def act_on_change(statement: str) -> None:
        if not statement.lstrip().startswith(READS):
            act(statement)

    before_each_statement(act_on_change)
    event.listen(Engine, "commit", lambda _conn: act("COMMIT"))


def fork(run: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        run()
    except BaseException:  # noqa: BLE001 - a fork must never return into the loop it came from
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def exit_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


REQUESTS: dict[str, Callable[..., dict[str, Any]]] = {
    "upgrade": run_recorded,
    "kill": run_killed,
    "race": run_raced,
}

if __name__ == "__main__":
    import mediaplane.protocol.migration  # noqa: F401 - so that the forks need not

    serve()
