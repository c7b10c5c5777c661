"""The feed delivers every event once, in the order of ids, to those whom it concerns."""

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

import pytest
from sqlalchemy import Connection, select

from control_plane.feed import RECENT_EVENTS, Feed
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Topic, changed
from mediaplane.protocol.tables import events
from tests.support.databases import Databases
from tests.support.rows import Rows
from tests.support.waiting import PATIENCE_SECONDS, eventually

WRITERS = 4
TRANSACTIONS = 60

on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)


class RolledBack(Exception):
    """The end of a transaction that is to leave nothing."""


@contextmanager
def feeding(database: Databases, recent_events: int = RECENT_EVENTS) -> Iterator[Feed]:
    bell = database.control.bell = Bell(database.control, None)
    feed = Feed(database.control, bell, 0.05, recent_events)
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()
        bell.close()


class Watcher:
    """Follows a feed in a thread, as a stream does."""

    def __init__(self, feed: Feed, *job_ids: int, after_id: int = 0) -> None:
        self.seen: list[int] = []
        self._feed, self._job_ids, self._after_id = feed, frozenset(job_ids) or None, after_id
        self._thread = threading.Thread(target=self._follow)
        self._box = self._feed.mailbox(None, self._job_ids)

    def __enter__(self) -> Self:
        self.mailbox = self._box.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.mailbox.close()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        self._box.__exit__(None, None, None)

    def _follow(self) -> None:
        for message in self._feed.follow(self.mailbox, self._after_id):
            assert message.event.id == message.event_id
            self.seen.append(message.event_id)

    def must_see(self, expected: list[int]) -> None:
        eventually(lambda: len(self.seen) >= len(expected))
        assert self.seen == expected


def add_job(database: Databases) -> int:
    with database.control.write() as conn:
        return int(Rows(conn).add("jobs"))


def append(conn: Connection, job_id: int) -> int:
    """Append an event in a transaction that has written something before, as all do."""
    Rows(conn).add("libraries")
    changed(conn, Topic.NEWS)
    return int(Rows(conn).add("events", job_id=job_id))


def append_now(database: Databases, job_id: int) -> int:
    with database.control.write() as conn:
        return append(conn, job_id)


@contextmanager
def rolled_back(database: Databases) -> Iterator[Connection]:
    """A transaction that leaves nothing."""
    with suppress(RolledBack), database.control.write() as conn:
        yield conn
        raise RolledBack


def stored(database: Databases) -> list[int]:
    with database.control.read() as conn:
        return list(conn.scalars(select(events.c.id).order_by(events.c.id)))


def write_at_random(database: Databases, seed: int) -> int:
    """Append events in many transactions; return how many were rolled back."""
    chance = random.Random(seed)
    fates = [chance.random() < 0.3 for _ in range(TRANSACTIONS)]
    for is_rolled_back in fates:
        with rolled_back(database) if is_rolled_back else database.control.write() as conn:
            job_id = Rows(conn).add("jobs")
            for _ in range(chance.randint(1, 3)):
                append(conn, job_id)
    return sum(fates)


def test_every_event_arrives_once_and_in_order_whoever_writes_at_the_same_time(
    database: Databases,
) -> None:
    lost: list[int] = []
    with feeding(database) as feed, Watcher(feed) as watcher:
        writers = [
            threading.Thread(target=lambda n=n: lost.append(write_at_random(database, n)))
            for n in range(WRITERS)
        ]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
        watcher.must_see(stored(database))
    assert sum(lost) > 0
    if database.control.dialect == "postgresql":
        assert watcher.seen[-1] > len(watcher.seen)  # what was rolled back has left gaps


@on_postgres
@pytest.mark.parametrize("is_committed", [True, False])
def test_an_event_is_held_back_until_it_is_certain_what_comes_before(
    database: Databases, is_committed: bool
) -> None:
    job, other = add_job(database), add_job(database)
    with feeding(database) as feed, Watcher(feed) as watcher:
        with database.control.write() if is_committed else rolled_back(database) as conn:
            first = append(conn, job)
            second = append_now(database, other)
            assert second == first + 1
            for _ in range(3):
                feed.look()
            assert (feed.frontier_id, watcher.seen) == (first - 1, [])
        watcher.must_see([first, second] if is_committed else [second])


@on_postgres
def test_what_is_missing_may_have_begun_to_write_last(database: Databases) -> None:
    """The transaction of the missing id has the highest number of all, and none has ended after."""
    job, other = add_job(database), add_job(database)
    with feeding(database) as feed, Watcher(feed) as watcher:
        with ExitStack() as late:
            with database.control.write() as conn:
                Rows(conn).add("libraries")
                first = append(late.enter_context(database.control.write()), job)
                second = append(conn, other)
            assert second == first + 1
            for _ in range(3):
                feed.look()
            assert watcher.seen == []
        watcher.must_see([first, second])


@on_postgres
def test_a_long_transaction_holds_nothing_back_that_has_no_gap(database: Databases) -> None:
    job = add_job(database)
    with feeding(database) as feed, Watcher(feed) as watcher, database.control.write() as conn:
        Rows(conn).add("libraries")
        appended = [append_now(database, job) for _ in range(5)]
        watcher.must_see(appended)


@on_postgres
def test_a_feed_that_starts_beside_an_open_transaction_misses_none_of_its_events(
    database: Databases,
) -> None:
    job, other = add_job(database), add_job(database)
    before = append_now(database, job)
    with ExitStack() as stack:
        with ExitStack() as open_:
            first = append(open_.enter_context(database.control.write()), job)
            second = append_now(database, other)
            feed = stack.enter_context(feeding(database))
            assert feed.frontier_id == before
            watcher = stack.enter_context(Watcher(feed, after_id=feed.frontier_id))
        watcher.must_see([first, second])


def test_a_feed_starts_at_the_newest_event_whatever_gaps_are_behind_it(
    database: Databases,
) -> None:
    job = add_job(database)
    append_now(database, job)
    with rolled_back(database) as conn:
        append(conn, job)
    newest = append_now(database, job)
    with feeding(database) as feed:
        feed.look()
        assert feed.frontier_id == newest


def test_from_every_event_the_rest_follows(database: Databases) -> None:
    jobs = [add_job(database) for _ in range(3)]
    with feeding(database, recent_events=4) as feed:
        past = [append_now(database, jobs[number % 3]) for number in range(9)]
        feed.look()
        with ExitStack() as stack:
            watchers = [
                (stack.enter_context(Watcher(feed, *of, after_id=after)), of, after)
                for of in ([], jobs[:1], jobs[:2])
                for after in range(past[-1] + 3)
            ]
            to_come = [append_now(database, jobs[number % 3]) for number in range(6)]
            owners = dict(zip(past + to_come, (jobs * 5)[:9] + (jobs * 5)[:6], strict=True))
            for watcher, of, after in watchers:
                watcher.must_see(
                    [n for n, job in owners.items() if n > after and (not of or job in of)]
                )


def test_fifty_watchers_of_a_job_see_every_event_once(database: Databases) -> None:
    job = add_job(database)
    with feeding(database) as feed, ExitStack() as stack:
        watchers = [stack.enter_context(Watcher(feed, job)) for _ in range(50)]
        appended = [append_now(database, job) for _ in range(20)]
        for watcher in watchers:
            watcher.must_see(appended)


def test_a_slow_watcher_falls_behind_and_still_sees_everything(database: Databases) -> None:
    job = add_job(database)
    with (
        feeding(database, recent_events=5) as feed,
        feed.mailbox(None, frozenset({job})) as mailbox,
    ):
        appended = [append_now(database, job) for _ in range(3)]
        feed.look()
        stream = feed.follow(mailbox, 0)
        assert next(stream).event_id == appended[0]
        appended += [append_now(database, job) for _ in range(40)]
        feed.look()
        assert appended[1] not in feed.recent
        assert [next(stream).event_id for _ in appended[1:]] == appended[1:]
        appended.append(append_now(database, job))
        assert next(stream).event_id == appended[-1]


def test_what_the_feed_keeps_does_not_grow_with_the_history(database: Databases) -> None:
    job = add_job(database)
    with feeding(database, recent_events=10) as feed, feed.mailbox(None, frozenset({job})) as idle:
        with database.control.write() as conn:
            appended = [append(conn, job) for _ in range(100)]
        feed.look()
        assert list(feed.recent) == appended[-10:]
        assert idle.count() <= 12


def test_an_event_concerns_those_alone_who_watch_its_job(database: Databases) -> None:
    mine, theirs = add_job(database), add_job(database)
    with (
        feeding(database) as feed,
        feed.mailbox(None, frozenset({mine})) as concerned,
        feed.mailbox(None, None) as all_jobs,
    ):
        append_now(database, theirs)
        feed.look()
        assert (concerned.count(), all_jobs.count()) == (0, 1)
        append_now(database, mine)
        feed.look()
        assert (concerned.count(), all_jobs.count()) == (1, 2)
    assert len(feed.recent) == 2


def test_an_event_that_nobody_watches_is_not_kept(database: Databases) -> None:
    with feeding(database) as feed:
        newest = append_now(database, add_job(database))
        feed.look()
        assert feed.frontier_id == newest
        assert not feed.recent


def test_the_streams_end_when_the_feed_stops(database: Databases) -> None:
    followed: list[int] = []
    with feeding(database) as feed:

        def follow() -> None:
            with feed.mailbox(None, None) as mailbox:
                for message in feed.follow(mailbox, 0):
                    followed.append(message.event_id)  # noqa: PERF401 - seen at once

        thread = threading.Thread(target=follow)
        thread.start()
        event = append_now(database, add_job(database))
        eventually(lambda: followed == [event])
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
