"""Old history is forgotten in small bites, and nothing that is still needed with it."""

from sqlalchemy import event, insert, text

from control_plane.policy import retention
from mediaplane.protocol.tables import scan_errors
from mediaplane.protocol.values import JobStatus
from tests.support.databases import Databases
from tests.support.rows import Rows

DAY_MS = 24 * 3600 * 1000
FINAL = ("completed", "failed", "cancelled", "skipped")


def forget_all(database: Databases, days: float = 30) -> int:
    bites, is_more = 0, True
    while is_more:
        with database.control.write() as conn:
            is_more = retention.forget(conn, days)
        bites += 1
    return bites


def add_job(rows: Rows, days_ago: float, **columns: object) -> int:
    then = rows.now() - int(days_ago * DAY_MS)
    job: int = rows.add("jobs", **({"created_at": then, "finished_at": then} | columns))
    return job


def kept(database: Databases, table: str, column: str = "id") -> set[int]:
    with database.control.read() as conn:
        return set(conn.scalars(text(f"SELECT {column} FROM {table}")))


def test_ended_jobs_go_when_they_are_old_enough_and_others_stay(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        old = {add_job(rows, 31, status=status) for status in FINAL}
        stay = {add_job(rows, 29, status=status) for status in FINAL}
        waiting = [status for status in JobStatus if status not in FINAL]
        stay |= {add_job(rows, 400, status=status, finished_at=None) for status in waiting}
        stay.add(add_job(rows, 400, status="completed", finished_at=rows.now()))
    assert len(old) == 4
    forget_all(database)
    assert kept(database, "jobs") == stay


def test_what_belongs_to_a_forgotten_job_goes_with_it(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        old = add_job(rows, 31, status="failed", total_items=1)
        again = add_job(rows, 1, status="completed", retry_of=old)
        library = rows.add("libraries")
        sessions = [
            rows.add("scan_sessions", job_id=job, library_id=library) for job in (old, again)
        ]
        for job, session in zip((old, again), sessions, strict=True):
            rows.add("events", job_id=job)
            rows.add("job_items", job_id=job)
            rows.add("scan_entries", session_id=session)
            rows.add("scan_batches", session_id=session)
            conn.execute(insert(scan_errors).values(session_id=session, rel_path=b"x"))
    forget_all(database)
    assert kept(database, "jobs") & {old, again} == {again}
    assert kept(database, "jobs", "retry_of") == {None}
    for table in ("events", "job_items", "scan_sessions"):
        assert kept(database, table, "job_id") & {old, again} == {again}
    for table in ("scan_entries", "scan_batches", "scan_errors"):
        assert kept(database, table, "session_id") & set(sessions) == {sessions[1]}


def test_the_latest_scan_of_a_library_is_kept_whatever_its_age(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        scans = [add_job(rows, 90 - number, status="completed", kind="scan") for number in range(3)]
        library = rows.add("libraries")
        for job in scans:
            rows.add("scan_sessions", job_id=job, library_id=library)
    forget_all(database)
    assert kept(database, "jobs") & set(scans) == {scans[-1]}


def test_much_history_goes_in_many_transactions(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        for _ in range(450):
            add_job(rows, 31, status="completed")
    commits: list[object] = []
    event.listen(database.control.engine, "commit", commits.append)
    assert forget_all(database) == 3
    assert kept(database, "jobs") == set()
    assert len(commits) >= 3


def test_ended_clean_ups_go_when_they_are_old_enough_and_others_stay(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)

        def add(days_ago: int, status: str) -> int:
            then = rows.now() - days_ago * DAY_MS
            ended = {"finished_at": then} if status in ("completed", "failed") else {}
            row_id: int = rows.add(
                "thumbnail_cleanup_jobs", status=status, created_at=then, **ended
            )
            return row_id

        # More than one bite of them.
        old = {add(31, status) for status in ("completed", "failed") for _ in range(101)}
        stay = {add(29, "completed"), add(29, "failed"), add(400, "pending"), add(400, "running")}
    assert kept(database, "thumbnail_cleanup_jobs") == old | stay
    forget_all(database)
    assert kept(database, "thumbnail_cleanup_jobs") == stay


def test_zero_days_keeps_everything(database: Databases) -> None:
    with database.control.write() as conn:
        add_job(Rows(conn), 4000, status="completed")
    forget_all(database, days=0)
    assert len(kept(database, "jobs")) == 1
