"""Promises: among 1,000 watchers one sees a transition within 100 ms, and history costs no memory.

The watchers are coroutines: a thousand threads of a client would be what is measured.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import grpc.aio
from sqlalchemy import text

from bench.claim_cost import SERIES
from bench.databases import Fresh
from bench.verdicts import Verdicts, percentile, row
from mediaplane.locations import Locations
from mediaplane.planes import is_serving
from mediaplane.protocol import migration
from mediaplane.protocol.database import Database
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import Plane
from mediaplane.v1 import job_service_pb2 as pb
from mediaplane.v1.job_service_pb2_grpc import JobServiceStub

# The generated types know only calls that block.
Stub: TypeAlias = Any

WATCHERS = 1_000
CHANNELS = 10
TRANSITIONS = 300
PAUSE_SECONDS = 0.03
LIMIT_MS = 100
START_SECONDS = 30.0


def measure(fresh: Fresh, history: int, verdicts: Verdicts) -> None:
    """Watch a control plane that has nothing else to do."""
    with fresh() as url, _control_plane(url) as (address, process_id):
        own = asyncio.run(_watch(address, WATCHERS, TRANSITIONS))
        shared = asyncio.run(_watch(address, 1, 1))
        # The same work before and after, so that nothing but the history differs.
        asyncio.run(_watch(address, WATCHERS, 1))
        before = _resident_mb(process_id)
        _add_history(url, history)
        asyncio.run(_watch(address, WATCHERS, 1))
        after = _resident_mb(process_id)
    row("one of them, its own job", own, "ms")
    row("all of them, the same job", shared, "ms")
    row("memory, before", [before], "MB")
    row(f"memory, {history:,} events later", [after], "MB")
    verdicts.at_most("a watcher sees a transition, p99 in ms", percentile(own, 99), LIMIT_MS)
    verdicts.at_most("memory of the control plane, times before", after / before, 1.1)


async def _watch(address: str, jobs: int, transitions: int) -> list[float]:
    """Return the milliseconds from the answer to a cancellation to its arrival at watchers."""
    async with AsyncExitStack() as stack:
        stubs = [await _stub(stack, address) for _ in range(CHANNELS)]
        names = await _new_jobs(stubs[0], jobs)
        watching: list[str] = []
        arrivals: dict[str, list[asyncio.Task[int]]] = {name: [] for name in names}
        for number in range(WATCHERS):
            name = names[number % len(names)]
            watcher = _arrival(stubs[number % CHANNELS], name, watching)
            arrivals[name].append(asyncio.create_task(watcher))
        while len(watching) < WATCHERS:
            await asyncio.sleep(0.05)
        delays: list[float] = []
        for name in random.sample(names, transitions):
            await asyncio.sleep(PAUSE_SECONDS)
            await stubs[0].CancelJob(pb.CancelJobRequest(name=name))
            answered_at = time.time_ns()
            seen_at = await asyncio.gather(*arrivals.pop(name))
            # A watcher may well know before the caller does.
            delays += [max(0, at - answered_at) / 1e6 for at in seen_at]
        for task in [task for tasks in arrivals.values() for task in tasks]:
            task.cancel()
    return delays


async def _stub(stack: AsyncExitStack, address: str) -> Stub:
    # Each with a connection of its own; otherwise they would all share one.
    options = [("grpc.use_local_subchannel_pool", 1)]
    channel: Any = await stack.enter_async_context(grpc.aio.insecure_channel(address, options))
    return JobServiceStub(channel)


async def _new_jobs(stub: Stub, count: int) -> list[str]:
    wanted = pb.CreateJobRequest(job=pb.Job(kind=pb.JOB_KIND_PROBE))
    created = await stub.BatchCreateJobs(pb.BatchCreateJobsRequest(requests=[wanted] * count))
    return [job.name for job in created.jobs]


async def _arrival(stub: Stub, name: str, watching: list[str]) -> int:
    """Watch a job until it is cancelled; return when that was heard of."""
    async for message in stub.WatchJobs(pb.WatchJobsRequest(names=[name])):
        if message.job.state == pb.Job.STATE_CANCELLED:
            return time.time_ns()
        watching.append(name)
    raise RuntimeError(f"The stream of {name} ended before the job did.")


@contextmanager
def _control_plane(url: str) -> Iterator[tuple[str, int]]:
    migration.upgrade(url)
    apply_grants(url)
    environment = os.environ | {
        "MEDIAPLANE_DATABASE_URL": url,
        "MEDIAPLANE_CONTROL_WATCHERS": str(WATCHERS + 100),
    }
    address = Locations.from_environment(environment).control_address
    with subprocess.Popen([sys.executable, "-m", "control_plane"], env=environment) as process:
        give_up_at = time.monotonic() + START_SECONDS
        while not (Path(address.removeprefix("unix:")).exists() and is_serving(address)):
            if time.monotonic() > give_up_at or process.poll() is not None:
                raise RuntimeError(f"The control plane does not serve on {address}.")
            time.sleep(0.05)
        try:
            yield address, process.pid
        finally:
            process.terminate()


def _add_history(url: str, count: int) -> None:
    database = Database(url, Plane.CONTROL)
    series = SERIES[database.dialect].format(count=count)
    chosen = "SELECT min(job_id) FROM events"
    with database.write() as conn:
        conn.execute(
            text(
                "INSERT INTO events (job_id, type, created_at)"
                f" SELECT ({chosen}), 'job_progress', 0 FROM ({series}) AS n"
            )
        )
    database.close()


def _resident_mb(process_id: int) -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
