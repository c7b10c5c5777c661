"""The last entries of a worker's log are in memory, and on disk only when they are asked for."""

import logging
import re
import resource
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from data_plane.flight_log import ENTRIES, KEPT_DUMPS, FlightLog
from tests.support.dumps import entries, messages

WORKER = "myhost-3f2a9c0d1e2b"
NAME = re.compile(rf"{WORKER}_\d{{8}}T\d{{6}}\.\d{{3}}Z\.log")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "forensics"


@pytest.fixture
def flight_log(directory: Path) -> Iterator[FlightLog]:
    made = FlightLog(WORKER, directory)
    yield made
    made.close()


def keep(flight_log: FlightLog, message: str, *args: object, exc_info: Any = None) -> None:
    """Log something to this handler alone, past those that pytest reports from."""
    flight_log.handle(
        logging.LogRecord("data_plane.x", logging.DEBUG, "", 0, message, args, exc_info)
    )


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Have the kernel refuse to make any file larger, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_last_fifty_thousand_entries_are_kept_oldest_first(flight_log: FlightLog) -> None:
    for number in range(50_003):
        keep(flight_log, "entry %d", number)
    kept = messages(flight_log.dump("asked"))
    assert kept == [f"entry {number}" for number in range(3, 50_003)]
    assert len(kept) == ENTRIES


def test_an_entry_has_the_time_in_utc_the_level_the_thread_and_the_source(
    flight_log: FlightLog,
) -> None:
    before = time.gmtime()
    keep(flight_log, "a step")
    after = time.gmtime()
    (entry,) = entries(flight_log.dump("asked"))
    moment, rest = entry.split(" ", 1)
    assert rest == "DEBUG MainThread data_plane.x: a step"
    first, last = (time.strftime("%Y-%m-%dT%H:%M:%S", one) for one in (before, after))
    assert first <= moment[:19] <= last
    assert re.fullmatch(r"\.\d{3}Z", moment[19:])


def test_a_dump_says_whose_it_is_why_and_how_much_it_holds(flight_log: FlightLog) -> None:
    keep(flight_log, "a step")
    dump = flight_log.dump("asked by\nan operator")
    moment = dump.stem.partition("_")[2]
    assert dump.read_text().split("\n")[:2] == [
        f"worker {WORKER}, 1 entries, dumped {moment}: asked by",
        "    an operator",
    ]


def test_a_dump_is_for_its_owner_alone(flight_log: FlightLog, directory: Path) -> None:
    assert not directory.exists()
    dump = flight_log.dump("asked")
    assert dump.parent == directory
    assert NAME.fullmatch(dump.name)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600


def test_what_an_entry_is_made_of_is_not_kept_alive(flight_log: FlightLog) -> None:
    class Large:
        def __repr__(self) -> str:
            return "a large thing"

    large = Large()
    gone = weakref.ref(large)
    keep(flight_log, "met %r", large)
    del large
    assert gone() is None
    assert messages(flight_log.dump("asked")) == ["met a large thing"]


def test_a_message_cannot_pose_as_another_entry_or_steer_a_terminal(
    flight_log: FlightLog,
) -> None:
    keep(flight_log, "a\n2026-01-01T00:00:00.000Z INFO forged\r\x1b[31m\u202egpj.\udcff é")
    (entry,) = entries(flight_log.dump("asked"))
    forged = "    2026-01-01T00:00:00.000Z INFO forged\\r\\x1b[31m\\u202egpj.\\udcff é"
    assert entry.split("\n")[1:] == [forged]


def test_a_traceback_stands_indented_below_its_message(flight_log: FlightLog) -> None:
    with pytest.raises(ValueError, match="no\nsuch thing") as caught:
        raise ValueError("no\nsuch thing")
    keep(flight_log, "It failed", exc_info=(caught.type, caught.value, caught.tb))
    (entry,) = entries(flight_log.dump("asked"))
    first, *below = entry.split("\n")
    assert first.endswith("data_plane.x: It failed")
    assert below[0] == "    Traceback (most recent call last):"
    assert below[-2:] == ["    ValueError: no", "    such thing"]


def test_a_huge_message_keeps_its_beginning_and_its_end(flight_log: FlightLog) -> None:
    keep(flight_log, "begin %s end", "x" * 10_000_000)
    (message,) = messages(flight_log.dump("asked"))
    assert message.startswith("begin xxx")
    assert message.endswith("xxx end")
    assert "characters left out" in message
    assert len(message) < 5000


def test_a_log_call_that_is_wrong_does_not_end_the_work(
    flight_log: FlightLog, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(flight_log, "%d files", "many")
    assert "Logging error" in capsys.readouterr().err
    assert entries(flight_log.dump("asked")) == []


def test_entries_of_many_threads_are_all_kept_while_dumps_are_written(
    flight_log: FlightLog,
) -> None:
    start = threading.Barrier(4)

    def work(thread: int) -> list[Path]:
        start.wait()
        dumps = []
        for number in range(500):
            keep(flight_log, "%d of %d", number, thread)
            if number % 100 == 0:
                dumps.append(flight_log.dump(f"{thread} in between"))
        return dumps

    with ThreadPoolExecutor(4) as pool:
        dumps = [dump for found in pool.map(work, range(4)) for dump in found]
    assert len({*dumps}) == len(dumps) == 20
    assert all(entries(dump) for dump in dumps)
    kept = messages(flight_log.dump("asked"))
    assert sorted(kept) == sorted(f"{n} of {thread}" for n in range(500) for thread in range(4))


def test_dumps_of_the_same_millisecond_are_files_of_their_own(
    flight_log: FlightLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    dumps = [flight_log.dump(f"number {number}") for number in range(3)]
    assert [dump.stem.partition("_")[2] for dump in dumps] == [
        "20231114T221320.123Z", "20231114T221320.124Z", "20231114T221320.125Z",
    ]  # fmt: skip
    reasons = [dump.read_text().strip().rpartition(": ")[2] for dump in dumps]
    assert reasons == ["number 0", "number 1", "number 2"]


def test_only_the_newest_dumps_of_all_workers_are_kept(
    flight_log: FlightLog, directory: Path
) -> None:
    directory.mkdir(parents=True)
    # By name the workers would come first, and the oldest is what a killed worker left.
    others = [f"{'za'[n % 2]}_1_20210101T0000{n:02d}.000Z.log" for n in range(KEPT_DUMPS)]
    for name in (*others, "z_1_20200101T000000.000Z.log.partial", "notes.txt"):
        (directory / name).touch()
    newest = flight_log.dump("asked")
    assert {path.name for path in directory.iterdir()} == {*others[1:], newest.name, "notes.txt"}


def test_a_full_disk_is_told_to_who_asked_and_leaves_no_torn_file(
    flight_log: FlightLog, directory: Path
) -> None:
    for number in range(1000):
        keep(flight_log, "entry %d", number)
    with file_size_limit(4096), pytest.raises(OSError, match="File too large"):
        flight_log.dump("asked")
    assert list(directory.iterdir()) == []
    assert len(messages(flight_log.dump("asked again"))) == 1000
