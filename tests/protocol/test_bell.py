"""Waiters are woken by what other threads and other processes have committed."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg
import pytest

from mediaplane.protocol.bell import MERGE_SECONDS, Bell, Ear
from mediaplane.protocol.database import Database, Topic, changed
from mediaplane.protocol.values import Plane
from tests.support.databases import Databases
from tests.support.waiting import PATIENCE_SECONDS, eventually, must_not_block

# Another process: rings each topic it reads, and writes each topic it hears.
NEIGHBOUR = """
import os, sys, threading
from pathlib import Path
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.values import Plane

bell = Bell(Database(sys.argv[1], Plane.DATA), Path(sys.argv[2]))
ears = {topic: bell.listen(topic) for topic in Topic}
bell.start()
for ear in ears.values():
    assert ear.wait(180)
print("ready", flush=True)

def tell(topic):
    while True:
        if ears[topic].wait(180):
            os.write(1, f"{topic}\\n".encode())  # in one piece

for topic in Topic:
    threading.Thread(target=tell, args=(topic,), daemon=True).start()
for line in sys.stdin:
    bell.ring(Topic(line.strip()))
bell.close()
"""


class Neighbour:
    """A bell in another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self.process = process
        self._stdin: IO[str] = process.stdin
        self._stdout: IO[str] = process.stdout

    def ring(self, topic: Topic, times: int = 1) -> None:
        self._stdin.write(f"{topic}\n" * times)
        self._stdin.flush()

    def heard(self) -> str:
        return self._stdout.readline().strip()


@contextmanager
def neighbour(database: Databases, directory: Path) -> Iterator[Neighbour]:
    command = [sys.executable, "-c", NEIGHBOUR, database.url, str(directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            other = Neighbour(process)
            assert other.heard() == "ready"
            yield other
        finally:
            process.kill()


@contextmanager
def ringing(database: Database, directory: Path, *topics: Topic) -> Iterator[list[Ear]]:
    """A bell that hears others, with an ear for each topic; it is the database's bell."""
    bell = Bell(database, directory)
    ears = [bell.listen(topic) for topic in topics]
    probe = bell.listen(Topic.NEWS)
    bell.start()
    for ear in (*ears, probe):
        assert ear.wait(PATIENCE_SECONDS)  # rung once it hears
    database.bell = bell
    try:
        yield ears
    finally:
        bell.close()


def change(database: Database, *topics: Topic) -> None:
    with database.write() as conn:
        for topic in topics:
            changed(conn, topic)


def bell_of(database: Database) -> Bell:
    assert database.bell
    return database.bell


def test_a_commit_wakes_every_ear_of_its_topic_and_no_other(
    database: Databases, tmp_path: Path
) -> None:
    topics = (Topic.NEWS, Topic.NEWS, Topic.WORK)
    with ringing(database.control, tmp_path, *topics) as (first, second, other):
        change(database.control, Topic.NEWS)
        assert first.wait(0)
        assert second.wait(0)
        assert not first.wait(0)
        assert not other.wait(0)


def test_a_rolled_back_transaction_rings_nothing(database: Databases, tmp_path: Path) -> None:
    def fail() -> None:
        with database.control.write() as conn:
            changed(conn, Topic.NEWS)
            raise LookupError

    with ringing(database.control, tmp_path, Topic.NEWS) as (ear,):
        with pytest.raises(LookupError):
            fail()
        change(database.control)  # on the same pooled connection, most likely
        assert not ear.wait(0)
        change(database.control, Topic.NEWS)
        assert ear.wait(0)


def test_an_ear_that_is_closed_is_not_rung(database: Databases, tmp_path: Path) -> None:
    with ringing(database.control, tmp_path, Topic.NEWS, Topic.NEWS) as (closed, open_):
        closed.close()
        change(database.control, Topic.NEWS)
        assert open_.wait(0)
        assert not closed.wait(0)


def test_closing_the_bell_wakes_whoever_waits(database: Databases, tmp_path: Path) -> None:
    woken = threading.Event()
    with ringing(database.control, tmp_path, Topic.NEWS, Topic.WORK) as ears:

        def wait() -> None:
            if all(ear.wait(PATIENCE_SECONDS) for ear in ears):
                woken.set()

        threading.Thread(target=wait).start()
    assert woken.wait(PATIENCE_SECONDS)


def test_a_commit_in_one_process_wakes_another(database: Databases, tmp_path: Path) -> None:
    with (
        ringing(database.data, tmp_path, Topic.NEWS, Topic.WORK) as (news, work),
        neighbour(database, tmp_path) as other,
    ):
        change(database.data, Topic.WORK)
        assert other.heard() == "work"
        assert work.wait(0)
        other.ring(Topic.NEWS)
        assert news.wait(PATIENCE_SECONDS)
        assert not work.wait(0)


def test_two_processes_hear_each_other_from_a_folder_with_a_long_path(
    database: Databases, tmp_path: Path
) -> None:
    folder = tmp_path / ("d" * 120) / ("e" * 120)
    with (
        ringing(database.control, folder, Topic.NEWS) as (ear,),
        neighbour(database, folder) as other,
    ):
        other.ring(Topic.NEWS)
        assert ear.wait(PATIENCE_SECONDS)


def test_many_rings_are_few_wake_ups_elsewhere(database: Databases, tmp_path: Path) -> None:
    with ringing(database.control, tmp_path), neighbour(database, tmp_path) as other:
        bell = bell_of(database.control)
        for _ in range(1000):
            bell.ring(Topic.NEWS)
        assert other.heard() == "news"
        heard = 1
        threading.Event().wait(5 * MERGE_SECONDS)  # the end of the last window
        bell.ring(Topic.WORK)
        while other.heard() == "news":
            heard += 1
        assert heard < 500


def test_a_ring_right_after_another_is_not_lost(database: Databases, tmp_path: Path) -> None:
    with (
        ringing(database.control, tmp_path),
        neighbour(database, tmp_path) as other,
        must_not_block(),
    ):
        for _ in range(50):
            bell_of(database.control).ring(Topic.NEWS)
            assert other.heard() == "news"


def test_what_was_rung_before_the_end_is_still_sent(database: Databases, tmp_path: Path) -> None:
    with neighbour(database, tmp_path) as other:
        with ringing(database.control, tmp_path):
            bell_of(database.control).ring(Topic.NEWS)
            assert other.heard() == "news"
            for _ in range(3):
                bell_of(database.control).ring(Topic.NEWS)
        assert other.heard() == "news"


def test_a_bell_whose_line_cannot_be_opened_still_rings_in_its_own_process(
    database: Databases, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if database.control.dialect == "sqlite":
        blocked = tmp_path / "a file"
        blocked.touch()
        broken = Database(database.url, Plane.CONTROL)
    else:
        blocked = tmp_path
        broken = Database("postgresql://nobody@127.0.0.1:1/none", Plane.CONTROL)
    bell = Bell(broken, blocked)
    ear = bell.listen(Topic.NEWS)
    bell.start()
    eventually(lambda: "noticed late" in caplog.text)
    assert not ear.wait(0)
    bell.ring(Topic.NEWS)
    assert ear.wait(0)
    bell.close()
    broken.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_socket_of_a_killed_process_is_removed_by_the_next_ring(
    database: Databases, tmp_path: Path
) -> None:
    folder = tmp_path / "bells"
    with ringing(database.control, tmp_path), neighbour(database, tmp_path) as other:
        mine, *_ = folder.glob(f"{os.getpid()}-*")
        theirs, *_ = folder.glob(f"{other.process.pid}-*")
        other.process.kill()
        other.process.wait()
        assert theirs.exists()
        bell_of(database.control).ring(Topic.NEWS)
        eventually(lambda: not theirs.exists())
        assert mine.exists()
    assert list(folder.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_full_buffer_loses_no_topic(database: Databases, tmp_path: Path) -> None:
    with ringing(database.control, tmp_path, Topic.NEWS, Topic.WORK) as (news, work):
        (mine,) = (tmp_path / "bells").glob(f"{os.getpid()}-*")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            has_been_full = False
            while not has_been_full:
                try:
                    sender.sendto(b"work", socket.MSG_DONTWAIT, str(mine))
                except BlockingIOError:
                    has_been_full = True
        assert work.wait(PATIENCE_SECONDS)
        assert news.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_the_listener_survives_the_loss_of_its_connection(
    database: Databases, tmp_path: Path
) -> None:
    with (
        ringing(database.control, tmp_path, Topic.NEWS) as (ear,),
        neighbour(database, tmp_path) as other,
    ):
        assert terminate_bells(database) >= 2
        assert ear.wait(PATIENCE_SECONDS)  # rung once it hears again
        assert other.heard() in {*Topic}
        other.ring(Topic.NEWS)
        assert ear.wait(PATIENCE_SECONDS)


def terminate_bells(database: Databases) -> int:
    """End the connections that listen or have notified; return how many there were."""
    url = database.control.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as conn:
        found = conn.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND (query LIKE 'LISTEN %' OR query LIKE 'SELECT pg_notify(%')"
        ).fetchall()
        for (process_id,) in found:
            assert conn.execute("SELECT pg_terminate_backend(%s)", (process_id,)).fetchone()
    return len(found)
