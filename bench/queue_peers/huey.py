"""Huey on SQLite, with commits as durable as ours and its consumer of one worker thread."""

import os
from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer

from bench.queue_roles import Report, play

# Results of jobs that return nothing are not stored, which saves it a commit.
WORKERS = 1


def open_huey(url: str) -> Any:
    # Without fsync it would leave SQLite's default; with it, FULL.
    return SqliteHuey(filename=url.removeprefix("sqlite:///"), fsync=True)


class HueyClient:
    """An application that enqueues."""

    def __init__(self, url: str) -> None:
        self._huey = open_huey(url)
        self._noop = self._huey.task(name="noop")(lambda: None)

    def install(self) -> str:
        (synchronous,), (journal,) = (
            self._huey.storage.sql(f"PRAGMA {name}", results=True)[0]
            for name in ("synchronous", "journal_mode")
        )
        return f"synchronous={synchronous} journal_mode={journal}"

    def enqueue(self, count: int, batch: int) -> None:
        # It has no batches: the rows are those that its own enqueue writes, in fewer commits.
        storage = self._huey.storage
        for _ in range(0, count, batch):
            tasks = [self._huey.serialize_task(self._noop.s()) for _ in range(batch)]
            with storage.db(commit=True) as cursor:
                cursor.executemany(
                    "insert into task (queue, data, priority) values (?, ?, 0)",
                    [(storage.name, task) for task in tasks],
                )

    def enqueue_one(self) -> None:
        self._noop()

    def is_finished(self) -> bool:
        # A job leaves the table when it starts, and the last one does nothing.
        return len(self._huey) == 0

    def close(self) -> None:
        self._huey.storage.close()


def work(url: str, timed: bool) -> None:
    huey = open_huey(url)
    # The shortest pauses on an idle queue that still leave the processor idle.
    consumer = Consumer(huey, workers=WORKERS, periodic=False, initial_delay=0.01, max_delay=0.01)
    report = Report(timed=timed, stop=consumer.stop_flag.set)

    @huey.task(name="noop")  # type: ignore[untyped-decorator]
    def noop() -> None:
        report.started()

    consumer.start()
    report.ready()
    consumer.stop_flag.wait()
    os._exit(0)


if __name__ == "__main__":
    play(HueyClient, work)
