"""How often the history of a job speaks of progress: twice a second, by the database's clock."""

from sqlalchemy import text

from mediaplane.protocol import gate, history
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import Rows
from tests.support.steps import EPOCH, HELD, LEASE_SECONDS, WORKER, history_of


def add_job(database: Databases, items: int) -> tuple[int, list[int]]:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", **HELD, status="running")
        held = dict(HELD, status="running", job_id=job)
        return job, [Rows(conn).add("job_items", **held) for _ in range(items)]


def beat(database: Databases, items: list[int], *figures: int) -> None:
    """Beats in one transaction: no time passes between them."""
    leases = dict.fromkeys(items, EPOCH)
    with database.data.write(*WRITE_PATHS) as conn:
        for done_bytes in figures:
            told = {item: {"processed_bytes": done_bytes} for item in items}
            kept = gate.heartbeat(conn, JOB_ITEMS, WORKER, leases, LEASE_SECONDS, told)
            assert kept.keys() == leases.keys()


def set_told_ago(database: Databases, job: int, milliseconds: int) -> None:
    with database.control.write() as conn:
        told_at = Rows(conn).now() - milliseconds
        conn.execute(
            text("UPDATE jobs SET progress_at = :at WHERE id = :job"), {"at": told_at, "job": job}
        )


def types(database: Databases, job: int) -> list[str]:
    with database.control.read() as conn:
        return [event for event, _payload in history_of(conn, job)]


def test_two_beats_in_quick_succession_are_told_once(database: Databases) -> None:
    job, items = add_job(database, 4)
    beat(database, items, 1, 2)
    once = [*["item_progress"] * 4, "job_progress"]
    assert types(database, job) == once
    # A minute ahead, so that a slow machine does not let the half second pass.
    set_told_ago(database, job, -60_000)
    beat(database, items, 3)
    assert types(database, job) == once


def test_half_a_second_later_progress_is_told_again(database: Databases) -> None:
    assert history.PROGRESS_MS == 500
    job, items = add_job(database, 1)
    set_told_ago(database, job, history.PROGRESS_MS)
    beat(database, items, 1)
    assert types(database, job) == ["item_progress", "job_progress"]


def test_each_job_has_a_half_second_of_its_own(database: Databases) -> None:
    silent, silent_items = add_job(database, 2)
    job, items = add_job(database, 2)
    set_told_ago(database, silent, -60_000)
    beat(database, silent_items + items, 1)
    assert types(database, silent) == []
    assert types(database, job) == ["item_progress", "item_progress", "job_progress"]


def test_every_end_of_an_item_is_told_and_the_progress_of_its_job_is_not(
    database: Databases,
) -> None:
    job, items = add_job(database, 5)
    with database.data.write(*WRITE_PATHS) as conn:
        for item in items:
            assert gate.take(conn, JOB_ITEMS, "complete", item, Lessee(item, WORKER, EPOCH))
    assert types(database, job) == ["item_done", "job_progress", *["item_done"] * 4]


def test_a_beat_without_figures_tells_nothing(database: Databases) -> None:
    job, (item,) = add_job(database, 1)
    with database.data.write(*WRITE_PATHS) as conn:
        assert gate.heartbeat(conn, JOBS, WORKER, {job: EPOCH}, LEASE_SECONDS)
        assert gate.heartbeat(conn, JOB_ITEMS, WORKER, {item: EPOCH}, LEASE_SECONDS)
    assert types(database, job) == []


def test_only_the_figures_of_leases_that_are_held_are_told(database: Databases) -> None:
    job, (mine, lost) = add_job(database, 2)
    with database.data.write(*WRITE_PATHS) as conn:
        figures = {mine: {"processed_bytes": 3}, lost: {"processed_bytes": 4}}
        leases = {mine: EPOCH, lost: EPOCH - 1}
        assert gate.heartbeat(conn, JOB_ITEMS, WORKER, leases, 60, figures).keys() == {mine}
        assert gate.heartbeat(conn, JOBS, WORKER, {job: EPOCH - 1}, 60, {job: {}}) == {}
        (event, payload), _progress = history_of(conn, job)
    assert (event, payload["item"], payload["downloaded_bytes"]) == ("item_progress", mine, 3)


def test_a_job_tells_of_its_own_figures(database: Databases) -> None:
    job, _items = add_job(database, 0)
    figures = {job: {"progress": 0.5, "processed_items": 7}}
    with database.data.write(*WRITE_PATHS) as conn:
        assert gate.heartbeat(conn, JOBS, WORKER, {job: EPOCH}, 60, figures)
        ((event, payload),) = history_of(conn, job)
    assert (event, payload["progress"], payload["processed_items"]) == ("job_progress", 0.5, 7)
