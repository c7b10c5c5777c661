"""Jobs are planned after they are admitted: others write meanwhile, and who dies is replaced."""

import pytest
from sqlalchemy import select, text

from control_plane.policy import admission, bites, hashing, planning
from control_plane.policy.admission import Wanted
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import job_items, jobs, library_files
from mediaplane.protocol.values import JobKind, Plane
from tests.support.bites import before
from tests.support.control import at_once
from tests.support.databases import Copies, Databases, opened
from tests.support.files import add_files, add_library, content, summarise_all
from tests.support.hashing import plan_hash
from tests.support.planes import Worker

pytestmark = pytest.mark.usefixtures("bites_of_one_row")


def admit(database: Databases, files: int) -> Row:
    """Admit a hash of a library with so many files of one size, and leave it without a plan."""
    with database.control.write() as conn:
        add_library(conn, "photos")
        add_files(conn, "photos", [{}] * files)
        return admission.create(conn, Wanted(JobKind.HASH))


def job_of(database: Databases, job_id: int) -> Row:
    with database.control.read() as conn:
        return conn.execute(select(jobs).where(jobs.c.id == job_id)).mappings().one()


def marked(database: Databases) -> int:
    with database.control.read() as conn:
        return len(conn.scalars(select(library_files.c.id).where(library_files.c.needs_hash)).all())


def items(database: Databases) -> int:
    with database.control.read() as conn:
        return len(conn.scalars(select(job_items.c.id)).all())


def test_a_hash_without_a_plan_is_not_claimed_and_keeps_no_other_job_waiting(
    database: Databases,
) -> None:
    job = admit(database, 2)
    with database.control.write() as conn:
        probe = admission.create(conn, Wanted(JobKind.PROBE, priority=-1))
    worker = Worker(database.data)
    while worker.runner.work_once():
        pass
    worker.bell.close()
    assert job_of(database, probe["id"])["status"] == "completed"
    assert job_of(database, job["id"])["status"] == "pending"


def test_a_verify_job_without_a_plan_is_not_claimed_and_planned_by_the_next_look(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos")
        add_files(conn, "photos", [content(number) for number in range(3)])
        job = admission.create(conn, Wanted(JobKind.VERIFY, "photos"))
    worker = Worker(database.data)
    assert not worker.runner.work_once()
    planning.resume(database.control)
    planned = job_of(database, job["id"])
    assert (planned["total_items"], planned["total_bytes"], items(database)) == (3, 30, 1)
    planning.resume(database.control)
    assert items(database) == 1
    assert worker.runner.work_once()
    worker.bell.close()


def test_a_verify_job_is_listed_while_others_write(database: Databases) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos")
        add_files(conn, "photos", [content(1)])
        job = admission.create(conn, Wanted(JobKind.VERIFY, "photos"))
    other = Database(database.url, Plane.CONTROL)

    def write() -> None:
        with other.write() as conn:
            admission.create(conn, Wanted(JobKind.PROBE))

    before(database.control, "SELECT id, size_bytes FROM library_files", write)
    assert planning.plan(database.control, job)["total_items"] == 1
    other.close()
    with database.control.read() as conn:
        assert len(conn.scalars(select(jobs.c.id)).all()) == 2


def test_a_plan_that_nobody_made_is_made_by_the_next_look(database: Databases) -> None:
    job = admit(database, 3)
    planning.resume(database.control)
    planned = job_of(database, job["id"])
    assert (planned["total_items"], planned["total_bytes"]) == (3, 30)
    assert (marked(database), items(database)) == (3, 1)
    planning.resume(database.control)
    assert items(database) == 1


def test_a_plan_is_made_once_however_many_make_it(database: Databases) -> None:
    job = admit(database, 20)
    other = Database(database.url, Plane.CONTROL)
    at_once(
        lambda: planning.plan(database.control, job),
        lambda: planning.resume(database.control),
        lambda: planning.resume(other),
    )
    other.close()
    assert (job_of(database, job["id"])["total_items"], items(database)) == (20, 1)


def test_a_plan_by_two_that_know_nothing_of_each_other_is_made_once(database: Databases) -> None:
    job = admit(database, 3)
    other = Database(database.url, Plane.CONTROL)

    def overtake() -> None:
        with other.survey() as lists:
            hashing.plan(other, lists, job)

    before(database.control, "SELECT id FROM wanted_files", overtake, number=2)
    assert planning.plan(database.control, job)["total_items"] == 3
    other.close()
    assert (marked(database), items(database)) == (3, 1)


def test_a_hash_that_is_cancelled_while_it_is_planned_stays_cancelled(database: Databases) -> None:
    job = admit(database, 5)
    other = Database(database.url, Plane.CONTROL)

    def cancel() -> None:
        with other.write() as conn:
            admission.cancel(conn, None, job["id"])

    before(database.control, "SELECT id FROM wanted_files", cancel, number=3)
    assert planning.plan(database.control, job)["status"] == "cancelled"
    other.close()
    assert (marked(database), items(database)) == (2, 0)
    assert plan_hash(database.control)["total_items"] == 5


@pytest.mark.parametrize(
    "words",
    ["INTO further_names", "INTO shared_sizes", "INTO wanted_files", "FROM wanted_files",
     "SELECT f.id, f.size_bytes"],
)  # fmt: skip
def test_others_write_while_it_is_found_out_what_to_hash(database: Databases, words: str) -> None:
    job = admit(database, 3)
    other = Database(database.url, Plane.CONTROL)
    written = []

    def write() -> None:
        with other.write(held="duplicate_groups") as conn:
            conn.execute(text("UPDATE libraries SET name = 'written meanwhile'"))
        written.append(words)

    before(database.control, words, write)
    assert planning.plan(database.control, job)["total_items"] == 3
    other.close()
    assert written == [words]


def test_a_plan_waits_for_a_log_that_cannot_begin_anew(
    sqlite_template: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bites, "BITE_SECONDS", 0)
    monkeypatch.setattr(bites, "_PATIENCE_SECONDS", 0.01)
    with sqlite_template() as url, opened(url) as database:
        job = admit(database, 3)
        database.control.wal_limit_bytes = 0
        assert planning.plan(database.control, job)["total_items"] is None
        assert 0 < marked(database) < 3
        database.control.wal_limit_bytes = 1 << 30
        planning.resume(database.control)
        assert job_of(database, job["id"])["total_items"] == 3


def test_the_hashes_that_a_plan_drops_leave_the_groups_right(database: Databases) -> None:
    links = {"device": 5, "inode": 77}
    with database.control.write() as conn:
        add_library(conn, "photos")
        add_files(conn, "photos", [links | content(1)] * 4 + [content(1)])
        summarise_all(conn)
    plan_hash(database.control)
    with database.control.read() as conn:
        assert conn.execute(text("SELECT file_count FROM duplicate_groups")).scalar_one() == 2
