"""Fixtures of the tests that need both planes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from data_plane.executor import Context, Executor
from data_plane.registry import EXECUTORS
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.planes import control_loops
from tests.support.planes import desk as desk


@pytest.fixture
def loops(database: Databases) -> Iterator[None]:
    with control_loops(database):
        yield


ProbeRun = Callable[[Any, Context], Any]


@pytest.fixture
def probe_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has probes done as a test says; the task is the claimed row."""

    def install(run: ProbeRun, record: Callable[..., None] = lambda *_: None) -> None:
        executor = Executor(lambda _database, row: row, run, record)
        monkeypatch.setitem(EXECUTORS, JobKind.PROBE, executor)

    return install
