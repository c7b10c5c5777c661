"""0028_scan_batches: a scan whose batches are taken away does not succeed without them."""

from sqlalchemy import text

from mediaplane.protocol import migration
from tests.migrations.databases import NewDatabases, connected
from tests.support.rows import Rows

BEFORE = "0027_large_files"


def test_a_downgrade_ends_the_running_scans_that_have_batches(databases: NewDatabases) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        rows = Rows(conn)
        statuses = ("running", "running", "succeeded")
        sessions = [rows.add("scan_sessions", status=status) for status in statuses]
        for session in (sessions[0], sessions[2]):
            rows.add("scan_batches", session_id=session)
    migration.downgrade(url, BEFORE)
    with connected(url) as conn:
        query = text("SELECT id, status, error_code, finished_at FROM scan_sessions")
        found = {row[0]: tuple(row[1:]) for row in conn.execute(query)}
    ended, running, succeeded = (found[session] for session in sessions)
    assert ended[:2] == ("failed", "scan_ended")
    assert ended[2] is not None
    assert (running[:2], succeeded[:2]) == (("running", None), ("succeeded", None))
