"""Both planes are restarted one after the other under somebody who watches a job."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from mediaplane.client import Client
from mediaplane.protocol.tables import events
from tests.faults.site import Site
from tests.faults.test_signals import Planes
from tests.support.commands import Commands
from tests.support.waiting import PATIENCE_SECONDS, eventually

ITEMS = 2000  # more than are done before the job is cancelled


class Watcher(threading.Thread):
    """A program that watches a job by the client library."""

    def __init__(self, address: str, job_id: int) -> None:
        super().__init__()
        self.address = address
        self.job_id = job_id
        self.told: list[int] = []  # events, after the one that the watch began with
        self.began_with: int | None = None

    def run(self) -> None:
        with Client(self.address) as client:
            for message in client.watch([str(self.job_id)]):
                if self.began_with is None:
                    self.began_with = message.event_id
                else:
                    self.told.append(message.event_id)


def test_who_watches_a_job_misses_no_event_when_both_planes_are_restarted(
    site: Site, tmp_path: Path
) -> None:
    planes = Planes(site)
    job_id = site.admit_cut(ITEMS, seconds=0.05)
    watcher = Watcher(planes.address, job_id)
    watcher.start()
    # Who watches ends by itself when there is no control plane for long, also if this test fails.
    with watching(tmp_path, planes.address, job_id) as (watch, follow):
        heard = [follow.stdout.readline()]  # by then the other one is there as well
        for module in ("data_plane", "control_plane"):
            hear_more(watcher)
            planes.restart(module)
        hear_more(watcher)
        with Client(planes.address) as client:
            client.cancel_job(str(job_id))
        watcher.join(PATIENCE_SECONDS)
        heard += follow.stdout
        (said,) = json.loads(watch.stdout.read()).values()
    all_events = history(site, job_id)
    first = all_events.index(watcher.told[0])
    assert watcher.told == all_events[first:]
    assert watcher.began_with == all_events[first - 1]
    assert [int(json.loads(line)["id"]) for line in heard] == all_events
    # 1 as of every job that was cancelled.
    assert (follow.returncode, watch.returncode, said["state"]) == (0, 1, "cancelled")
    for module in planes.running:
        planes.stop(module)


@contextmanager
def watching(directory: Path, address: str, job_id: int) -> Iterator[tuple[Any, Any]]:
    """People who watch the job at the command line, and who follow its events."""
    commands, more = Commands(directory / "state"), ("--json", "--server", address)
    with (
        commands.start("job", "watch", str(job_id), *more) as watch,
        commands.start("job", "events", str(job_id), "--follow", "--after", "0", *more) as follow,
    ):
        yield watch, follow


def hear_more(watcher: Watcher) -> None:
    before = len(watcher.told)
    eventually(lambda: len(watcher.told) > before + 5)


def history(site: Site, job_id: int) -> list[int]:
    with site.database.control.read() as conn:
        query = select(events.c.id).where(events.c.job_id == job_id).order_by(events.c.id)
        return list(conn.scalars(query))
