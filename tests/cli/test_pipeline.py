"""How long `mediaplane up` waits for pictures and videos, and what it says when it does not."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from mediaplane import media
from mediaplane.cli import pipeline
from mediaplane.cli.pipeline import Media, current, decodes_media, finish, next_pause
from tests.support.control import ControlPlane, serving_control
from tests.support.databases import Copies, opened
from tests.support.files import add_files, add_library
from tests.support.media import add_row, set_columns
from tests.support.rows import Rows
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture
def control(sqlite_template: Copies, tmp_path: Path) -> Iterator[ControlPlane]:
    """With two libraries and a worker, which is a row that does nothing."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        with database.control.write() as conn:
            add_library(conn, "photos")
            add_library(conn, "archive")
            Rows(conn).add("worker_status", worker_id="w", state="idle", stats={"media_slots": 2})
        yield plane


def add_asset(control: ControlPlane, library: str, **columns: Any) -> int:
    row = {"library_id": library, "rel_path": b"a", "type": "image", "mtime": 1.5, "size": 7}
    row |= columns
    with control.database.control.write() as conn:
        add_files(conn, library, [{"rel_path": row["rel_path"]}])
    return add_row(control, "assets", **row)


def test_other_libraries_are_neither_waited_for_nor_counted(control: ControlPlane) -> None:
    add_asset(control, "archive")
    add_asset(control, "archive", rel_path=b"b", status="failed")
    assert finish(control.client, ["photos"], is_shown=False) == Media(0, 0)
    assert current(control.client, ["photos", "archive"]) == Media(1, 1)


def test_one_call_tells_whether_anything_is_left_in_all_libraries(control: ControlPlane) -> None:
    add_asset(control, "archive", status="extracting")
    sent: list[str] = []

    def note(_conn: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        sent.append(sql)

    engine = control.database.control.engine
    event.listen(engine, "before_cursor_execute", note)
    found = media.pipeline(control.client, ["photos", "archive"], omits_failed=True)
    event.remove(engine, "before_cursor_execute", note)
    assert found.running_assets == 1
    assert len([sql for sql in sent if "AS waiting_images" in sql]) == 1
    assert not [sql for sql in sent if "'failed'" in sql or "'poisoned'" in sql]


def test_what_waits_is_waited_for(control: ControlPlane) -> None:
    asset_id = add_asset(control, "photos")
    ended: list[Media] = []
    waiting = threading.Thread(
        target=lambda: ended.append(finish(control.client, ["photos"], is_shown=False))
    )
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    set_columns(control, "assets", asset_id, status="failed")
    waiting.join(PATIENCE_SECONDS)
    assert ended == [Media(1, 0)]


def test_what_nobody_takes_is_named_and_not_waited_for(
    control: ControlPlane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "_STUCK_SECONDS", 0.2)
    add_asset(control, "archive")
    assert finish(control.client, ["photos", "archive"], is_shown=False) == Media(0, 1)
    said = capsys.readouterr().err
    assert "1 image or video wait" in said
    assert "is the disk of archive mounted?" in said
    assert "no worker" not in said


def test_what_waits_behind_another_library_is_waited_for(
    control: ControlPlane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "_STUCK_SECONDS", 0.2)
    running = add_asset(control, "archive", status="extracting")
    add_asset(control, "photos")
    waiting = threading.Thread(
        target=lambda: finish(control.client, ["photos"], is_shown=False), daemon=True
    )
    waiting.start()
    waiting.join(1.5)  # several times as long as it waits for what nobody takes
    assert waiting.is_alive()
    set_columns(control, "assets", running, status="proxied")
    waiting.join(PATIENCE_SECONDS)
    assert not waiting.is_alive()
    assert "is the disk of photos mounted?" in capsys.readouterr().err


def test_counting_that_takes_long_is_done_less_often() -> None:
    assert next_pause(0.1, count_seconds=0.001) < 0.2
    assert next_pause(1.0, count_seconds=0.001) == 1.0
    assert next_pause(1.0, count_seconds=0.5) == 10.0


@pytest.mark.parametrize(
    ("columns", "is_there"),
    [
        ({}, True),
        ({"state": "offline"}, False),
        ({"stats": {"media_slots": 0}}, False),
        ({"stats": {}}, False),
    ],
)
def test_workers_without_slots_for_media_do_not_decode(
    control: ControlPlane, columns: dict[str, Any], is_there: bool
) -> None:
    with control.database.control.write() as conn:
        conn.exec_driver_sql("DELETE FROM worker_status")
        usual: dict[str, Any] = {"state": "idle", "stats": {"media_slots": 2}}
        Rows(conn).add("worker_status", worker_id="other", **(usual | columns))
    assert decodes_media(control.client) is is_there
