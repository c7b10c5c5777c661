"""To ask for a thumbnail costs little: few statements, and none that reads whole tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpc import StatusCode
from sqlalchemy import event, select, text

from control_plane.store.thumbnails import QUEUE
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import audit_log, thumbnails
from mediaplane.protocol.values import Plane
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


def test_a_thumbnail_that_is_asked_for_again_takes_one_look(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    first = requested(control, file)
    with statements(control) as sent:
        assert requested(control, file) == first
    assert len(sent) == 1
    assert "INSERT" not in sent[0][0]


def test_a_batch_may_mix_what_is_known_to_others_with_what_is_new(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path) as control:
        files = add_pictures(control, "photos", 6)
        known = {file: requested(control, file) for file in files[1::2]}
    # Another one remembers nothing of it.
    (tmp_path / "other").mkdir()
    with serving_control(database, tmp_path / "other") as control:
        found = requested_all(control, *({"file": file} for file in files))
        assert [one.file for one in found] == files
        assert found[1::2] == list(known.values())
        assert len({one.name for one in found}) == len(files)
        assert codes(control) == ["OK"] * (len(known) + 1)


def test_what_is_known_to_others_is_returned_while_somebody_else_writes(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path) as control:
        (file,) = add_pictures(control, "photos", 1)
        first = requested(control, file)
    (tmp_path / "other").mkdir()
    another = Database(database.url, Plane.CONTROL)
    with serving_control(database, tmp_path / "other") as control, another.write(held=QUEUE):
        assert requested(control, file) == first
    another.close()


def test_a_batch_of_one_group_and_one_of_a_group_each_are_added_alike(
    control: ControlPlane,
) -> None:
    files = add_pictures(control, "photos", 4)
    one = [{"file": file, "group_key": 'it\'s "one"'} for file in files[:2]]
    each = [{"file": file, "group_key": f"{{{file}}}"} for file in files[2:]]
    for wanted in (one, each):
        found = requested_all(control, *wanted)
        assert [{"file": got.file, "group_key": got.group_key} for got in found] == wanted


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
    assert "Seq Scan on library_files" not in plan
