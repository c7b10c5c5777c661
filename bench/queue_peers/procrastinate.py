"""Procrastinate as its documentation runs it: an asynchronous task, a pool of connections."""

import asyncio
import logging

from procrastinate import App, PsycopgConnector

from bench.queue_roles import Report, play

# 1 and 30 were slower where this was tried; 10 made no clear difference.
CONCURRENCY = 4


# It warns that the app is made in the main module, which only matters to its own command line.
logging.getLogger("procrastinate").setLevel(logging.ERROR)


def new_app(url: str) -> App:
    return App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=CONCURRENCY + 2))


class ProcrastinateClient:
    """An application that defers."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._app = new_app(url)
        self._runner.run(self._app.connector.open_async())
        self._deferrer = self._app.configure_task("noop")

    def install(self) -> str:
        self._runner.run(self._app.schema_manager.apply_schema_async())
        return f"synchronous_commit={self._ask('SHOW synchronous_commit')['synchronous_commit']}"

    def enqueue(self, count: int, batch: int) -> None:
        for _ in range(0, count, batch):
            self._runner.run(self._deferrer.batch_defer_async(*({} for _ in range(batch))))

    def enqueue_one(self) -> None:
        self._runner.run(self._deferrer.defer_async())

    def is_finished(self) -> bool:
        unfinished = "SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        return bool(self._ask(f"SELECT NOT EXISTS ({unfinished}) AS finished")["finished"])

    def close(self) -> None:
        self._runner.run(self._app.connector.close_async())

    def _ask(self, query: str) -> dict[str, object]:
        answer: dict[str, object] = self._runner.run(
            self._app.connector.execute_query_one_async(query)
        )
        return answer


async def run(url: str, timed: bool) -> None:
    loop = asyncio.get_running_loop()
    app = new_app(url)
    running: asyncio.Task[None] | None = None

    def stop() -> None:
        assert running is not None
        loop.call_soon_threadsafe(running.cancel)

    report = Report(timed=timed, stop=stop)

    @app.task(name="noop")  # type: ignore[untyped-decorator]
    async def noop() -> None:
        report.started()

    async with app.open_async():
        running = asyncio.create_task(app.run_worker_async(concurrency=CONCURRENCY))
        report.ready()
        await asyncio.wait([running])


def work(url: str, timed: bool) -> None:
    asyncio.run(run(url, timed))


if __name__ == "__main__":
    play(ProcrastinateClient, work)
