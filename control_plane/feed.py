"""Turns the events table into one live stream for many watchers, in the order of ids."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from sqlalchemy import Connection

from control_plane.frontier import Frontier
from control_plane.services import wire
from control_plane.store import events, jobs
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.driver import Row
from mediaplane.v1.job_service_pb2 import WatchJobsResponse

log = logging.getLogger(__name__)

RECENT_EVENTS = 10_000
_BATCH_EVENTS = 500
_GAP_SECONDS = 0.005
_ERROR_SECONDS = 1.0


class Mailbox:
    """The ids of events that one watcher has not sent yet."""

    def __init__(self, tenant_id: str | None, job_ids: frozenset[int] | None) -> None:
        # None means all jobs: of the tenant, or of all tenants.
        self.tenant_id = tenant_id
        self.job_ids = job_ids
        # Every event of the jobs after this one is delivered; those before are in the database.
        self.since_id = 0
        self.is_closed = False
        self._ids: SimpleQueue[int | None] = SimpleQueue()

    def begin(self, since_id: int) -> None:
        """Start anew, empty."""
        self.since_id = since_id
        self._ids = SimpleQueue()

    def close(self) -> None:
        """Have the watcher stop waiting, for good."""
        self.is_closed = True
        self.interrupt()

    def interrupt(self) -> None:
        """Have the watcher stop waiting."""
        self._ids.put(None)

    def put(self, event_id: int) -> None:
        """Add an event."""
        self._ids.put(event_id)

    def take(self) -> int | None:
        """Wait for the next id; None when interrupted."""
        return self._ids.get()

    def count(self) -> int:
        """Return how many ids are waiting."""
        return self._ids.qsize()


class Feed:
    """Reads each event once, whoever watches, and wakes those alone whom it concerns.

    Keeps the latest messages only: who has fallen behind reads the database and catches up.
    """

    def __init__(
        self, database: Database, bell: Bell, seconds: float, recent_events: int = RECENT_EVENTS
    ) -> None:
        self._database = database
        self._seconds = seconds
        self._recent_events = recent_events
        self._frontier = Frontier(database)
        # The latest messages by event, oldest first.
        self.recent: OrderedDict[int, WatchJobsResponse] = OrderedDict()
        # By job; under None those of all jobs.
        self._mailboxes: dict[int | None, set[Mailbox]] = {}
        # Reentrant: the end of a forgotten stream may be noticed by whoever holds it.
        self._turn = threading.RLock()
        self._ear = bell.listen(Topic.NEWS)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    @property
    def frontier_id(self) -> int:
        """The event up to which everything was delivered."""
        return self._frontier.event_id

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def start(self) -> None:
        """Begin with what happens from now on."""
        self._frontier.start()
        self._thread.start()

    def stop(self) -> None:
        """End all streams."""
        self._stopping.set()
        self._ear.ring()
        self._thread.join()
        with self._turn:
            for mailbox in {box for boxes in self._mailboxes.values() for box in boxes}:
                mailbox.interrupt()
        self._ear.close()

    def look(self) -> None:
        """Deliver what can be delivered by now."""
        with self._turn:
            is_full = True
            while is_full and (rows := self._frontier.look(_BATCH_EVENTS)):
                self._deliver(rows)
                self._frontier.event_id = rows[-1]["id"]
                is_full = len(rows) == _BATCH_EVENTS

    @contextmanager
    def mailbox(self, tenant_id: str | None, job_ids: frozenset[int] | None) -> Iterator[Mailbox]:
        """Have the events of these jobs of a tenant, or of all, delivered to a mailbox."""
        mailbox = Mailbox(tenant_id, job_ids)
        self._enter(mailbox)
        try:
            yield mailbox
        finally:
            self._leave(mailbox)

    def follow(self, mailbox: Mailbox, after_id: int) -> Iterator[WatchJobsResponse]:
        """Yield a message for every event after one, until the mailbox closes or the feed stops."""
        while not (self.is_stopped or mailbox.is_closed):
            for message in self._stored(mailbox, after_id):
                after_id = message.event_id
                yield message
            after_id = max(after_id, mailbox.since_id)
            while (news := self._next(mailbox)) is not None:
                if news.event_id > after_id:
                    after_id = news.event_id
                    yield news
            self._enter(mailbox)

    def _next(self, mailbox: Mailbox) -> WatchJobsResponse | None:
        """Wait for the next message; None when interrupted or when it is gone already."""
        event_id = mailbox.take()
        if event_id is None or mailbox.is_closed or self.is_stopped:
            return None
        return self.recent.get(event_id)

    def _stored(self, mailbox: Mailbox, after_id: int) -> Iterator[WatchJobsResponse]:
        """Yield the messages of events up to those that are delivered."""
        while after_id < mailbox.since_id and not mailbox.is_closed:
            with self._database.read() as conn:
                rows = events.page(
                    conn,
                    limit=_BATCH_EVENTS,
                    after_id=after_id,
                    until_id=mailbox.since_id,
                    job_ids=mailbox.job_ids,
                )
                messages = _messages(conn, mailbox.tenant_id, rows)
            yield from messages
            after_id = rows[-1]["id"] if len(rows) == _BATCH_EVENTS else mailbox.since_id

    def _enter(self, mailbox: Mailbox) -> None:
        with self._turn:
            mailbox.begin(self._frontier.event_id)
            for job_id in mailbox.job_ids or (None,):
                self._mailboxes.setdefault(job_id, set()).add(mailbox)
        if self.is_stopped or mailbox.is_closed:
            mailbox.interrupt()

    def _leave(self, mailbox: Mailbox) -> None:
        with self._turn:
            for job_id in mailbox.job_ids or (None,):
                boxes = self._mailboxes.get(job_id, set())
                boxes.discard(mailbox)
                if not boxes:
                    self._mailboxes.pop(job_id, None)

    def _deliver(self, rows: Sequence[Row]) -> None:
        wanted = [row for row in rows if self._addressees(row["job_id"])]
        if not wanted:
            return
        with self._database.read() as conn:
            messages = _messages(conn, None, wanted)
        job_of = {row["id"]: row["job_id"] for row in wanted}
        for message in messages:
            self.recent[message.event_id] = message
            for mailbox in self._addressees(job_of[message.event_id]):
                if mailbox.tenant_id not in (None, message.job.tenant):
                    continue
                mailbox.put(message.event_id)
                if mailbox.count() > self._recent_events:
                    self._leave(mailbox)
                    mailbox.interrupt()
        while len(self.recent) > self._recent_events:
            self.recent.popitem(last=False)

    def _addressees(self, job_id: int) -> tuple[Mailbox, ...]:
        return (*self._mailboxes.get(job_id, ()), *self._mailboxes.get(None, ()))

    def _run(self) -> None:
        gap_seconds = _GAP_SECONDS
        while not self.is_stopped:
            try:
                self.look()
            except Exception:
                if self._stopping.is_set():
                    return  # called off, most likely
                # The database may be restarting: go on when it is back.
                log.exception("The event feed met an error and goes on")
                self._stopping.wait(_ERROR_SECONDS)
            if self._frontier.is_waiting:
                # Nobody rings for a gap whose transaction was rolled back.
                self._ear.wait(gap_seconds)
                gap_seconds = min(2 * gap_seconds, self._seconds)
            else:
                gap_seconds = _GAP_SECONDS
                self._ear.wait(self._seconds)


def _messages(
    conn: Connection, tenant_id: str | None, rows: Sequence[Row]
) -> list[WatchJobsResponse]:
    """Return the messages of a tenant's events, or of all, each with its job as it is now."""
    job_ids = sorted({row["job_id"] for row in rows})
    found = jobs.get_many(conn, tenant_id, job_ids) if rows else []
    shown = {row["id"]: wire.job(row) for row in found}
    return [
        WatchJobsResponse(job=shown[row["job_id"]], event=wire.event(row), event_id=row["id"])
        for row in rows
        if row["job_id"] in shown  # else it is another tenant's, or was forgotten meanwhile
    ]
