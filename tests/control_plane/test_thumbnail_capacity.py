"""A request is admitted exactly when all of it fits, however ids and waiting rows have spread."""

from random import Random
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, text

from control_plane.policy import thumbnails as rules
from control_plane.policy.recollection import Recollection
from mediaplane.errors import Overloaded
from mediaplane.protocol.driver import Row
from tests.support.databases import Databases
from tests.support.files import add_files, add_library
from tests.support.rows import FAR_AHEAD, LONG_AGO

CAPACITY = 12
STEPS = 80
# What workers and clean-ups do to a row, by its status.
NEXT = {
    "pending": ["status = 'running'", "status = 'ready'"],
    "running": [
        "status = 'pending'",
        "status = 'ready'",
        f"status = 'failed', retry_after = {LONG_AGO}",
    ],
    "ready": ["deleted"],
    "failed": [f"retry_after = {FAR_AHEAD}", "deleted"],
}


class Queue(NamedTuple):
    """The thumbnails before a request."""

    rows: dict[int, Any]  # of each file that has one
    waiting: list[int]

    @property
    def span(self) -> int:
        """How many ids there are from the first that waits."""
        ids = [row.id for row in self.rows.values()]
        return max(ids) - min(self.waiting) + 1 if self.waiting else 0

    def is_to_be_made(self, file: int) -> bool:
        row = self.rows.get(file)
        return row is None or (row.status == "failed" and row.retry_after == LONG_AGO)


def add_media(database: Databases, *types: str) -> list[int]:
    with database.control.write() as conn:
        add_library(conn, "photos")
        return add_files(conn, "photos", [{"media_type": one} for one in types])


def request(database: Databases, *files: int) -> list[Row]:
    wanted = [rules.Wanted("photos", file) for file in files]
    return rules.request(database.control, None, wanted, CAPACITY, Recollection(CAPACITY))


def look(conn: Connection) -> Queue:
    rows = conn.execute(text("SELECT id, file_id, status, retry_after FROM thumbnails")).all()
    waiting = [row.id for row in rows if row.status == "pending"]
    return Queue({row.file_id: row for row in rows}, waiting)


def work(conn: Connection, random: Random) -> None:
    """Have some rows moved on, in no order."""
    rows = list(look(conn).rows.values())
    for row in random.sample(rows, min(len(rows), random.randint(0, 5))):
        change = random.choice(NEXT[row.status])
        sql = f"UPDATE thumbnails SET {change}" if change != "deleted" else "DELETE FROM thumbnails"
        conn.execute(text(f"{sql} WHERE id = {row.id}"))


@pytest.mark.parametrize(("first", "then"), [("image", "video"), ("video", "image")])
def test_a_queue_without_gaps_is_filled_to_its_last_place(
    database: Databases, first: str, then: str
) -> None:
    half = CAPACITY // 2
    *fitting, last = add_media(database, *[first] * half, *[then] * (half + 1))
    for file in fitting:
        request(database, file)
    with pytest.raises(Overloaded):
        request(database, last)


def test_a_request_is_admitted_exactly_when_all_of_it_fits(database: Databases) -> None:
    random = Random(1)
    files = add_media(database, *["image", "video"] * 30)
    seen = set()
    for _ in range(STEPS):
        with database.control.write() as conn:
            work(conn, random)
            before = look(conn)
        chosen = random.sample(files, random.randint(1, 4))
        new = sum(map(before.is_to_be_made, chosen))
        fits = not new or len(before.waiting) + new <= CAPACITY
        try:
            answer = request(database, *chosen)
        except Overloaded:
            assert not fits
        else:
            assert fits
            assert [row["file_id"] for row in answer] == chosen
        with database.control.read() as conn:
            after = len(look(conn).waiting)
        assert after == len(before.waiting) + new * fits
        seen.add((fits, before.span + new <= CAPACITY))
    # By their ids alone some would not have fitted that do.
    assert seen == {(True, True), (True, False), (False, False)}
