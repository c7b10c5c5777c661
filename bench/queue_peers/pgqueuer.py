"""PgQueuer as its documentation runs it: asyncpg, uvloop, batches of 100."""

import asyncio

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries

from bench.queue_roles import Report, play

ENTRYPOINT = "noop"
BATCH = 100


class PgQueuerClient:
    """One connection that enqueues."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._connection = self._runner.run(asyncpg.connect(url))
        self._queries = Queries.from_asyncpg_connection(self._connection)

    def install(self) -> str:
        self._runner.run(self._queries.install())
        # Otherwise the tables bloat: it is an option of the installation that its guide advises.
        self._runner.run(self._queries.optimize_autovacuum())
        level = self._runner.run(self._connection.fetchval("SHOW synchronous_commit"))
        return f"synchronous_commit={level}"

    def enqueue(self, count: int, batch: int) -> None:
        for _ in range(0, count, batch):
            self._runner.run(self._enqueue(batch))

    async def _enqueue(self, batch: int) -> None:
        # In a transaction, as ours: the clock of a drain starts right after its commit, and not
        # after the answer to the statement, which comes later than the news of it.
        async with self._connection.transaction():
            await self._queries.enqueue([ENTRYPOINT] * batch, [None] * batch, [0] * batch)

    def enqueue_one(self) -> None:
        self._runner.run(self._queries.enqueue(ENTRYPOINT, None))

    def is_finished(self) -> bool:
        query = "SELECT NOT EXISTS (SELECT 1 FROM pgqueuer)"
        return bool(self._runner.run(self._connection.fetchval(query)))

    def close(self) -> None:
        self._runner.run(self._connection.close())


async def run(url: str, timed: bool) -> None:
    loop = asyncio.get_running_loop()
    queue = PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))
    report = Report(timed=timed, stop=lambda: loop.call_soon_threadsafe(queue.shutdown.set))

    @queue.entrypoint(ENTRYPOINT)  # type: ignore[untyped-decorator]
    async def noop(job: object) -> None:
        report.started()

    report.ready()
    await queue.run(batch_size=BATCH)


def work(url: str, timed: bool) -> None:
    uvloop.run(run(url, timed))


if __name__ == "__main__":
    play(PgQueuerClient, work)
