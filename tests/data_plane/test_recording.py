"""A worker records in detail what it does, and leaves a dump when nobody handles an exception."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import text

from data_plane.flight_log import FlightLog, recording
from tests.support.databases import Databases, opened
from tests.support.dumps import entries, messages

log = logging.getLogger("data_plane.example")

# A plane as a process of its own, whose work is what a test says.
PROGRAM = """
import logging, sys, threading
from pathlib import Path
from data_plane.flight_log import FlightLog, recording
from data_plane.settings import DataSettings
from mediaplane.process import main

log = logging.getLogger("data_plane.example")

def run(locations, settings, stop):
    with recording(FlightLog("worker", Path(sys.argv[1]))):
        log.debug("a detail")
        log.info("a step")
        log.warning("a warning")
        {work}

sys.exit(main(DataSettings, run))
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "forensics"


@pytest.fixture
def flight_log(directory: Path) -> Iterator[FlightLog]:
    made = FlightLog("worker", directory)
    yield made
    made.close()


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """What reached the hook that was there before."""
    seen: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))
    return seen


def die_of(error: BaseException) -> None:
    """Have a thread end with an exception."""

    def work() -> NoReturn:
        raise error

    thread = threading.Thread(target=work, name="slot-7")
    thread.start()
    thread.join()


def run_process(work: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work), str(directory)],
        env=os.environ | {"MEDIAPLANE_STATE": str(directory.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_exception_that_ends_a_thread_is_dumped_and_then_passed_on(
    flight_log: FlightLog, directory: Path, hooked: list[BaseException | None]
) -> None:
    error = ValueError("a torn header")
    with recording(flight_log):
        log.debug("the last thing done")
        die_of(error)
    assert hooked == [error]
    (dump,) = directory.iterdir()
    assert "unhandled ValueError in thread slot-7" in dump.read_text().split("\n")[0]
    before, unhandled = entries(dump)
    assert before.endswith("the last thing done")
    assert "raise error" in unhandled
    assert unhandled.endswith("ValueError: a torn header")


def test_a_thread_that_ends_when_nothing_can_be_written_still_reaches_the_hook(
    tmp_path: Path, hooked: list[BaseException | None], caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "forensics"
    in_the_way.touch()
    error = ValueError("a torn header")
    with recording(FlightLog("worker", in_the_way)):
        die_of(error)
    assert hooked == [error]
    (told,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "flight log could not be written" in told.getMessage()
    assert told.exc_info
    assert isinstance(told.exc_info[1], FileExistsError)


def test_an_exception_that_ends_the_worker_is_dumped_and_raised(
    flight_log: FlightLog, directory: Path
) -> None:
    with pytest.raises(ValueError, match="a torn header"), recording(flight_log):
        raise ValueError("a torn header")
    (dump,) = directory.iterdir()
    assert "unhandled ValueError in thread MainThread" in dump.read_text().split("\n")[0]


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_being_asked_to_stop_is_nothing_to_dump(
    flight_log: FlightLog,
    directory: Path,
    hooked: list[BaseException | None],
    end: type[BaseException],
) -> None:
    with recording(flight_log):
        die_of(end())
    with pytest.raises(end), recording(flight_log):
        raise end
    assert [type(error) for error in hooked] == [end]
    assert not directory.exists()


def test_nothing_of_recording_is_left_afterwards(flight_log: FlightLog) -> None:
    def setup() -> object:
        loggers = [logging.getLogger(name) for name in ("", "data_plane", "mediaplane")]
        return threading.excepthook, [(one.level, list(one.handlers)) for one in loggers]

    before = setup()
    with recording(flight_log):
        assert setup() != before
    assert setup() == before
    log.error("too late")
    assert entries(flight_log.dump("asked")) == []


def test_libraries_are_recorded_from_warnings_on_and_do_no_work_for_less(
    flight_log: FlightLog, database: Databases
) -> None:
    library = logging.getLogger("sqlalchemy.engine.Engine")
    with recording(flight_log), opened(database.url) as fresh, fresh.control.read() as conn:
        conn.execute(text("SELECT 'a statement'"))
        assert not library.isEnabledFor(logging.INFO)
        library.warning("a library's warning")
    assert messages(flight_log.dump("asked")) == ["a library's warning"]


@pytest.mark.parametrize(
    ("work", "code"),
    [
        ("raise ValueError('a torn header')", 1),
        ("t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", 0),
    ],
)
def test_a_process_writes_details_to_a_dump_and_only_warnings_to_its_log(
    directory: Path, work: str, code: int
) -> None:
    ended = run_process(work, directory)
    assert ended.returncode == code, ended.stderr
    assert "WARNING data_plane.example: a warning" in ended.stderr
    assert ended.stderr.count("Traceback") == 1
    assert "a detail" not in ended.stderr
    assert "a step" not in ended.stderr
    (dump,) = directory.iterdir()
    assert messages(dump)[:3] == ["a detail", "a step", "a warning"]


def test_a_process_that_ends_in_order_leaves_no_dump(directory: Path) -> None:
    ended = run_process("pass", directory)
    assert ended.returncode == 0, ended.stderr
    assert "a warning" in ended.stderr
    assert not directory.exists()
