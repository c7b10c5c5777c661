"""One installation under fire: a database, a state directory, the processes, and what was asked."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import psycopg
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from control_plane.policy import admission
from control_plane.policy.admission import Wanted
from mediaplane.locations import Locations
from mediaplane.planes import command_line
from mediaplane.protocol.kinds import ProbePayload
from mediaplane.protocol.tables import job_items, jobs
from mediaplane.protocol.values import JobKind
from mediaplane.settings import variable
from tests.faults import invariants
from tests.faults.roles import CONTROL, WORKER
from tests.faults.zygote import Zygote
from tests.support.databases import Databases
from tests.support.planes import Desk
from tests.support.waiting import eventually

# More than any job can need, so that a job that fails has been lost.
MAX_ATTEMPTS = 100_000


class Site:
    """Knows every job that was acknowledged and how it must end."""

    def __init__(
        self, database: Databases, zygote: Zygote, directory: Path, state: Path | None = None
    ) -> None:
        self.database = database
        self.zygote = zygote
        self.state = state or directory / "state"
        # Beside the state directory, so that what happens to that does not happen to them.
        self.account = directory / "account"
        self.log = directory / "log"
        self.expected: dict[int, str] = {}
        self.refusals = 0  # requests that were not acknowledged and were made again
        self._planes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill whatever a test that failed has left running."""
        self.zygote.clear()
        for plane in self._planes:
            plane.kill()
            plane.wait()

    def start_worker(self, **settings: Any) -> int:
        """Start a worker process and return its id."""
        return self.zygote.start("work", **self._places(), account=str(self.account), **settings)

    def start_control(self, **settings: Any) -> int:
        """Start a process with the loops of a control plane and return its id."""
        return self.zygote.start("recover", **self._places(), **settings)

    def start_plane(
        self, module: str, number: int, **more: Any
    ) -> tuple[str, subprocess.Popen[bytes]]:
        """Start a plane as it is, with its calls; return its address and its process."""
        # Without a file: the path of a test's directory may be too long for a socket.
        address = f"unix-abstract:{self.state}-{module}-{number}"
        chosen = (WORKER if module == "data_plane" else CONTROL) | more
        settings = {variable(name): str(value) for name, value in chosen.items()}
        places = Locations(self.state, self.database.url, address, address).environment()
        self.state.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            plane = subprocess.Popen(
                command_line(module),
                env=os.environ | settings | places,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        self._planes.append(plane)
        return address, plane

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many workers have made themselves known."""
        eventually(lambda: len(Desk(self.database.control).workers()) == count)

    def admit(self, count: int, **probe: Any) -> list[int]:
        """Ask for probes that must be completed."""
        wanted = [
            Wanted(JobKind.PROBE, max_attempts=MAX_ATTEMPTS, probe=ProbePayload(**probe))
            for _ in range(count)
        ]
        with self.database.control.write() as conn:
            added = [int(row["id"]) for row in admission.create_many(conn, wanted)]
        self.expected |= dict.fromkeys(added, "completed")
        return added

    def admit_cut(self, items: int, **probe: Any) -> int:
        """Ask for a probe that is cut into items."""
        wanted = Wanted(JobKind.PROBE, max_attempts=MAX_ATTEMPTS, probe=ProbePayload(**probe),
                        probe_items=items)  # fmt: skip
        with self.database.control.write() as conn:
            job_id = int(admission.create(conn, wanted)["id"])
        self.expected[job_id] = "completed"
        return job_id

    def insist(self, request_id: str, **probe: Any) -> float:
        """Ask for a probe until it is acknowledged, and return for how many seconds."""
        began_at = time.monotonic()
        wanted = Wanted(JobKind.PROBE, max_attempts=MAX_ATTEMPTS, request_id=request_id,
                        probe=ProbePayload(**probe))  # fmt: skip
        while True:
            try:
                with self.database.control.write() as conn:
                    job_id = int(admission.create(conn, wanted)["id"])
            except (DBAPIError, psycopg.Error):  # that of a new connection is the driver's own
                self.refusals += 1
                time.sleep(0.02)
            else:
                self.expected[job_id] = "completed"
                return time.monotonic() - began_at

    def count(self, *statuses: str) -> int:
        """Return how many jobs stand in one of these statuses."""
        with self.database.control.read() as conn:
            query = select(func.count()).select_from(jobs).where(jobs.c.status.in_(statuses))
            return int(conn.execute(query).scalar_one())

    def status(self, job_id: int) -> str:
        """Return the status of a job."""
        with self.database.control.read() as conn:
            return str(conn.scalar(select(jobs.c.status).where(jobs.c.id == job_id)))

    def repetitions(self) -> int:
        """Return how often a job or an item was claimed again."""
        with self.database.control.read() as conn:
            return sum(
                int(epoch) - 1
                for table in (jobs, job_items)
                for epoch in conn.scalars(
                    select(table.c.lease_epoch).where(table.c.lease_epoch > 1)
                )
            )

    def wait_until_done(self) -> None:
        """Wait until every job has ended."""
        eventually(lambda: not self.count("pending", "running", "retryable"))

    def check(self, processes: Sequence[int] = (), *, clock: bool = True) -> None:
        """Stop the processes; nothing may be lost, done twice, forged or left lying about."""
        for pid in processes:
            self.zygote.end(pid)
        invariants.check(self.database, self.expected, self.account, clock=clock)
        self.check_scratch()

    def check_scratch(self) -> None:
        """Fail unless one more worker clears up what those before it have left."""
        self.zygote.end(self.start_worker())
        scratch = self.state / "scratch"
        assert scratch.is_dir()
        assert list(scratch.rglob("*")) == []

    def _places(self) -> dict[str, str]:
        return {"url": self.database.url, "state": str(self.state), "log": str(self.log)}
