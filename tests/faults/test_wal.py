"""SQLite's log stays below its limit under load, also while readers keep it from shrinking."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import select

from mediaplane.protocol import wal
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import wal_maintenance_jobs
from mediaplane.protocol.values import CheckpointMode
from tests.faults.site import Site
from tests.support.waiting import eventually
from tests.support.wal import write_much

# With MEDIAPLANE_TEST_WAL_SECONDS=600 the load lasts ten minutes, and a reader holds its snapshot
# for half of them.
SECONDS = float(os.environ.get("MEDIAPLANE_TEST_WAL_SECONDS", "6"))
HALF = SECONDS / 2
LIMIT_BYTES = 32 << 20
LIMITS = {"wal_limit_bytes": LIMIT_BYTES}
ITEMS = 200
TRUNCATE = CheckpointMode.TRUNCATE


@dataclass
class Witness:
    """What was seen of the log and its checkpoints while the load lasted."""

    sizes: list[int] = field(default_factory=list)
    tried: dict[tuple[int, int], Row] = field(default_factory=dict)  # each try of each row

    def look(self, site: Site) -> None:
        self.sizes.append(wal.size_bytes(site.database.control))
        with site.database.control.read() as conn:
            for row in conn.execute(select(wal_maintenance_jobs)).mappings():
                if row["status"] not in ("pending", "running"):
                    self.tried[row["id"], row["lease_epoch"]] = row


@contextmanager
def load(site: Site) -> Iterator[Witness]:
    """Jobs of thousands of items, one after the other, as fast as they are done."""
    witness, stop = Witness(), threading.Event()

    def ask() -> None:
        job = site.admit_cut(ITEMS)
        while not stop.wait(0.02):
            if site.status(job) == "completed":
                job = site.admit_cut(ITEMS)

    def look() -> None:
        while not stop.wait(0.01):
            witness.look(site)

    threads = [threading.Thread(target=ask), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    try:
        yield witness
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def check_truth(rows: list[Row]) -> None:
    """Each row says what SQLite said, and has drawn the right conclusion from it."""
    assert rows
    for row in rows:
        busy, in_log, carried = (
            row[name]
            for name in ("checkpoint_busy", "checkpoint_log_frames", "checkpointed_frames")
        )
        is_complete = busy == 0 and in_log == carried
        assert row["status"] == ("completed" if is_complete else "retryable"), row
        assert (row["error_code"] is None) is is_complete
        if in_log is not None:
            # A frame is a page and a header. The log never had more than its file could hold.
            assert 0 <= carried <= in_log <= 2 * LIMIT_BYTES // 4120
        if not is_complete:
            assert row["retry_after"] > row["started_at"]


def test_the_log_stays_below_its_limit_while_readers_starve_its_checkpoints(
    sqlite_site: Site,
) -> None:
    site = sqlite_site
    processes = [site.start_worker(**LIMITS), site.start_control(**LIMITS)]
    site.wait_for_workers(1)
    with load(site) as witness:
        starve_by_overlapping_readers(site)
        starve_by_one_long_reader(site, witness)
        done = site.count("completed")
        eventually(lambda: site.count("completed") > done)
        # The row that tried in vain tries again, and says how that went.
        eventually(lambda: "completed" in outcomes(witness))
    site.wait_until_done()
    tell(witness)
    assert max(witness.sizes) <= LIMIT_BYTES
    check_truth(list(witness.tried.values()))
    assert outcomes(witness) == {"completed", "retryable"}
    # Nobody holds a snapshot when there is nothing to do: not one of our own processes.
    eventually(lambda: wal.checkpoint(site.database.control, TRUNCATE).is_complete)
    site.check(processes)


def starve_by_overlapping_readers(site: Site) -> None:
    """Have somebody read at any time; SQLite by itself would let the log grow for ever."""
    readers = [
        site.zygote.start("read_on", url=site.database.url, seconds=0.2, times=int(HALF / 0.2))
        for _ in range(2)
    ]
    for pid in readers:
        assert site.zygote.wait(pid) == 0


def starve_by_one_long_reader(site: Site, witness: Witness) -> None:
    """Have the same snapshot read all the time: nothing shrinks the log until that has ended."""
    pid = site.zygote.start("read_on", url=site.database.url, seconds=3600, times=1)
    eventually(lambda: is_grown(site, witness))
    time.sleep(HALF)
    assert site.zygote.kill(pid)
    eventually(lambda: witness.sizes[-1] <= LIMIT_BYTES // 2)


def is_grown(site: Site, witness: Witness) -> bool:
    """Tell whether bulk work has to wait by now; if not, help with what others may write."""
    if witness.sizes[-1] <= LIMIT_BYTES // 2:
        write_much(site.database)
    return any(
        row["status"] == "retryable" and row["checkpoint_busy"] for row in witness.tried.values()
    )


def outcomes(witness: Witness) -> set[str]:
    return {row["status"] for row in list(witness.tried.values())}


def tell(witness: Witness) -> None:
    tries = [row["status"] for row in witness.tried.values()]
    print(  # noqa: T201 - shown with -s
        f"log: at most {max(witness.sizes) / 2**20:.1f} MiB in {len(witness.sizes)} looks;"
        f" {tries.count('completed')} checkpoints, {tries.count('retryable')} tries in vain"
    )
