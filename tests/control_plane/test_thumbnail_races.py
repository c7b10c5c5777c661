"""Many callers at once get exactly one thumbnail for each picture, and never too many."""

from functools import partial
from pathlib import Path

from grpc import StatusCode
from sqlalchemy import func, select

from mediaplane.protocol.tables import thumbnails
from tests.support.control import at_once, serving_control
from tests.support.databases import Databases
from tests.support.media import add_pictures, number, requested, requested_all, set_columns
from tests.support.rows import LONG_AGO

CALLERS = 8


def waiting(database: Databases) -> int:
    with database.control.read() as conn:
        query = select(func.count()).where(thumbnails.c.status == "pending")
        return conn.execute(query).scalar_one()


def test_callers_that_ask_for_the_same_pictures_at_once_get_the_same_thumbnails(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path) as control:
        wanted = [{"file": file} for file in add_pictures(control, "photos", 20)]
        # Half of them backwards: no order of asking may lead to a deadlock.
        calls = [partial(requested_all, control, *wanted[:: 1 - place % 2 * 2])
                 for place in range(CALLERS)]  # fmt: skip
        answers, refusals = at_once(*calls)
    assert not refusals
    assert len({frozenset(one.name for one in answer) for answer in answers}) == 1
    assert waiting(database) == len(wanted)


def test_callers_that_ask_at_once_never_fill_the_queue_beyond_its_capacity(
    database: Databases, tmp_path: Path
) -> None:
    capacity = 20
    with serving_control(database, tmp_path, thumbnail_capacity=capacity) as control:
        files = add_pictures(control, "photos", 6 * CALLERS)
        calls = [
            partial(requested_all, control, *({"file": file} for file in files[place::CALLERS]))
            for place in range(CALLERS)
        ]
        answers, refusals = at_once(*calls)
        assert len(answers) == 3  # of 6 each
        assert {refused.code for refused in refusals} == {StatusCode.RESOURCE_EXHAUSTED}
        assert len(refusals) == CALLERS - 3
        assert waiting(database) == 18
        # What was refused leaves the rest of the room to smaller requests.
        singles, refusals = at_once(*(partial(requested, control, file) for file in files))
        assert waiting(database) == capacity
        assert len(singles) == capacity
        assert len(refusals) == len(files) - capacity


def test_failed_thumbnails_that_are_asked_for_at_once_are_requeued_once_and_within_the_capacity(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=4) as control:
        files = add_pictures(control, "photos", 8)
        for file in files:
            row = number(requested(control, file).name)
            set_columns(control, "thumbnails", row, status="failed", retry_after=LONG_AGO)
        answers, refusals = at_once(*(partial(requested, control, file) for file in files * 2))
        assert waiting(database) == 4
        assert len({answer.name for answer in answers}) == 4
        assert {refused.code for refused in refusals} == {StatusCode.RESOURCE_EXHAUSTED}
