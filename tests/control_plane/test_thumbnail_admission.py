"""To ask for a thumbnail costs little: few statements, and none that reads whole tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpc import StatusCode
from sqlalchemy import event, select, text

from mediaplane.protocol.tables import audit_log, thumbnails
from mediaplane.v1 import thumbnail_service_pb2 as pb
from tests.support.control import ControlPlane, refusal, serving_control
from tests.support.databases import Databases
from tests.support.media import add_pictures, requested, requested_all
from tests.support.waiting import eventually

# Looked for, begun, added and written down; PostgreSQL takes all of it in one.
MOST_STATEMENTS = {"sqlite": 5, "postgresql": 1}
FINISHED = 5_000


@contextmanager
def statements(control: ControlPlane) -> Iterator[list[tuple[str, Any]]]:
    """What is sent to the database in the meantime."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, bound: Any, *_rest: Any) -> None:
        # The feed looks for events at any time.
        if "FROM events" not in sql:
            sent.append((sql, bound))

    engine = control.database.control.engine
    event.listen(engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine, "before_cursor_execute", note)


def codes(control: ControlPlane) -> list[str]:
    with control.database.control.read() as conn:
        return list(conn.scalars(select(audit_log.c.code)))


def test_a_new_thumbnail_and_five_hundred_take_few_statements(control: ControlPlane) -> None:
    one, *others = add_pictures(control, "photos", 501)
    for wanted in ([one], others):
        with statements(control) as sent:
            requested_all(control, *({"file": file} for file in wanted))
        assert 1 <= len(sent) <= MOST_STATEMENTS[control.database.control.dialect]
    assert codes(control) == ["OK", "OK"]


def test_a_request_that_does_not_fit_changes_nothing_and_is_written_down_as_refused(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=1) as control:
        first, second = add_pictures(control, "photos", 2)
        requested(control, first)
        request = pb.RequestThumbnailRequest(file=second)
        found = refusal(control.client.thumbnail_service.RequestThumbnail, request)
        assert found.code is StatusCode.RESOURCE_EXHAUSTED
        eventually(lambda: codes(control) == ["OK", "RESOURCE_EXHAUSTED"])
        with database.control.read() as conn:
            assert len(conn.execute(select(thumbnails.c.id)).all()) == 1


def test_what_waits_is_counted_by_its_index_among_thousands_that_are_made(
    control: ControlPlane,
) -> None:
    dialect = control.database.control.dialect
    files = add_pictures(control, "photos", FINISHED + 1)
    for start in range(0, FINISHED, 500):
        requested_all(control, *({"file": file} for file in files[start : start + 500]))
    # As they stand while PostgreSQL still takes every thumbnail for one that waits.
    with control.database.control.write() as conn:
        conn.execute(text("ANALYZE thumbnails"))
    with control.database.control.write() as conn:
        conn.execute(text("UPDATE thumbnails SET status = 'ready'"))
    with statements(control) as sent:
        requested(control, files[-1])
    (added,) = ((sql, bound) for sql, bound in sent if "INSERT INTO thumbnails" in sql)
    explain = "EXPLAIN QUERY PLAN" if dialect == "sqlite" else "EXPLAIN"
    with control.database.control.read() as conn:
        cursor = conn.connection.cursor()
        plan = "\n".join(str(row[-1]) for row in cursor.execute(f"{explain} {added[0]}", added[1]))
    # Once for the lowest id that waits, and once for their number.
    assert plan.count("ix_thumbnails_claim") == 2
    assert "Seq Scan on thumbnails" not in plan
