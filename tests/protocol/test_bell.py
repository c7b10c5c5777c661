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
from tests.support.databases import Databases, administrator
from tests.support.waiting import eventually

# Another process: rings each topic it reads, and writes each topic it hears.
NEIGHBOUR = """
import sys, threading
from pathlib import Path
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.values import Plane

bell = Bell(Database(sys.argv[1], Plane.DATA), Path(sys.argv[2]))
ears = {topic: bell.listen(topic) for topic in Topic}
bell.start()
for ear in ears.values():
    assert ear.wait(20)
print("ready", flush=True)

def tell(topic):
    while True:
        if ears[topic].wait(60):
            print(topic, flush=True)

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
def ringing(database: Database, directory: Path | None, *topics: Topic) -> Iterator[list[Ear]]:
    """A bell that hears others, with an ear for each topic; it is the database's bell."""
    bell = Bell(database, directory)
    ears = [bell.listen(topic) for topic in topics]
    probe = bell.listen(Topic.WORK)
    bell.start()
    if directory is not None:
        assert probe.wait(20)  # it is rung once it hears
        for ear in ears:
            assert ear.wait(20)
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


def test_a_commit_wakes_every_ear_of_its_topic_and_no_other(database: Databases) -> None:
    topics = (Topic.NEWS, Topic.NEWS, Topic.WORK)
    with ringing(database.control, None, *topics) as (first, second, other):
        change(database.control, Topic.NEWS)
        assert first.wait(0)
        assert second.wait(0)
        assert not first.wait(0)
        assert not other.wait(0)


def test_a_rolled_back_transaction_rings_nothing(database: Databases) -> None:
    def fail() -> None:
        with database.control.write() as conn:
            changed(conn, Topic.NEWS)
            raise LookupError

    with ringing(database.control, None, Topic.NEWS) as (ear,):
        with pytest.raises(LookupError):
            fail()
        change(database.control)  # on the same pooled connection, most likely
        assert not ear.wait(0)
        change(database.control, Topic.NEWS)
        assert ear.wait(0)


def test_an_ear_that_is_closed_is_not_rung(database: Databases) -> None:
    with ringing(database.control, None, Topic.NEWS, Topic.NEWS) as (closed, open_):
        closed.close()
        change(database.control, Topic.NEWS)
        assert open_.wait(0)
        assert not closed.wait(0)


def test_closing_the_bell_wakes_whoever_waits(database: Databases, tmp_path: Path) -> None:
    woken = threading.Event()
    with ringing(database.control, tmp_path, Topic.NEWS, Topic.WORK) as ears:

        def wait() -> None:
            if all(ear.wait(60) for ear in ears):
                woken.set()

        threading.Thread(target=wait).start()
    assert woken.wait(20)


def test_a_commit_in_one_process_wakes_another(database: Databases, tmp_path: Path) -> None:
    with (
        ringing(database.data, tmp_path, Topic.NEWS, Topic.WORK) as (news, work),
        neighbour(database, tmp_path) as other,
    ):
        change(database.data, Topic.WORK)
        assert other.heard() == "work"
        assert work.wait(0)
        other.ring(Topic.NEWS)
        assert news.wait(20)
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
        assert ear.wait(20)


def test_many_rings_are_few_wake_ups_and_the_last_is_never_lost(
    database: Databases, tmp_path: Path
) -> None:
    """The neighbour hears by its own bell, so each line of it is one ring on the way."""
    with ringing(database.control, tmp_path), neighbour(database, tmp_path) as other:
        bell = bell_of(database.control)
        for _ in range(1000):
            bell.ring(Topic.NEWS)
        bell.ring(Topic.WORK)
        heard = [other.heard()]
        while "work" not in heard:
            heard.append(other.heard())
        assert 1 <= heard.count("news") < 500
        # Far from the others, so that it cannot be one with them.
        threading.Event().wait(5 * MERGE_SECONDS)
        bell.ring(Topic.WORK)
        while heard[-1] != "work" or heard.count("work") < 2:
            heard.append(other.heard())


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


def test_the_socket_of_a_killed_process_is_removed_by_the_next_ring(
    database: Databases, tmp_path: Path
) -> None:
    if database.control.dialect != "sqlite":
        return  # PostgreSQL forgets who is gone by itself
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


def test_a_full_buffer_loses_no_topic(database: Databases, tmp_path: Path) -> None:
    if database.control.dialect != "sqlite":
        return  # the server keeps notifications for those who are slow
    with ringing(database.control, tmp_path, Topic.NEWS, Topic.WORK) as (news, work):
        (mine,) = (tmp_path / "bells").glob(f"{os.getpid()}-*")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            has_been_full = False
            while not has_been_full:
                try:
                    sender.sendto(b"work", socket.MSG_DONTWAIT, str(mine))
                except BlockingIOError:
                    has_been_full = True
        assert work.wait(20)
        assert news.wait(20)


def test_the_listener_survives_the_loss_of_its_connection(
    database: Databases, tmp_path: Path
) -> None:
    if database.control.dialect != "postgresql":
        return  # there is no connection to lose
    with (
        ringing(database.control, tmp_path, Topic.NEWS) as (ear,),
        neighbour(database, tmp_path) as other,
    ):
        assert terminate_bells(database) >= 2
        assert ear.wait(20)  # rung once it hears again
        assert other.heard() in ("news", "work")
        other.ring(Topic.NEWS)
        assert ear.wait(20)


def terminate_bells(database: Databases) -> int:
    """End the connections that listen or have notified; return how many there were."""
    url = database.control.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as conn:
        ended = conn.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND (query LIKE 'LISTEN %' OR query LIKE '%pg_notify(%')"
            " AND pid <> pg_backend_pid() AND pg_terminate_backend(pid)"
        ).fetchone()
    assert ended
    return int(ended[0])
