"""Bites of one row, and a chance to act between two statements of somebody else."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from control_plane.policy import bites
from mediaplane.protocol.database import Database


@pytest.fixture
def bites_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every row changed by a transaction of its own, without a pause."""
    for size in ("_FIRST_ROWS", "_FEWEST_ROWS", "_MOST_ROWS"):
        monkeypatch.setattr(bites, size, 1)
    for pause in ("PAUSE_SECONDS", "_LONG_PAUSE_SECONDS"):
        monkeypatch.setattr(bites, pause, 0)


def before(database: Database, words: str, act: Callable[[], None], *, number: int = 1) -> None:
    """Act before the statement that is the n-th of those with these words."""
    seen = 0

    def look(_conn: Any, _cursor: Any, statement: str, *_: object) -> None:
        nonlocal seen
        if words in statement:
            seen += 1
            if seen == number:
                act()

    event.listen(database.engine, "before_cursor_execute", look)
