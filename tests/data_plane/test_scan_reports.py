"""What a worker is told of a scan that is over before its walk is."""

import pytest

from data_plane.catalogue import Report
from data_plane.executor import Fail, LeaseLost, ScanCounts
from tests.support.databases import Databases
from tests.support.reports import LIBRARY, Scan, known_library, start_scan

ANOTHER_INODE = 9


def report_of(database: Databases, scan: Scan) -> Report:
    return Report(database.data, scan.session_id, LIBRARY)


def test_a_scan_that_is_refused_during_the_walk_fails_with_the_reason(
    database: Databases,
) -> None:
    known_library(database)
    scan = start_scan(database)
    report = report_of(database, scan)
    report.began((1, ANOTHER_INODE))
    scan.absorbed()
    # Not a lost lease: nobody would end the job until it has lapsed.
    with pytest.raises(Fail, match="--accept-new-root") as refused:
        report.walked(ScanCounts())
    assert refused.value.code == "root_changed"


def test_a_scan_whose_session_was_taken_over_has_lost_its_lease(database: Databases) -> None:
    known_library(database)
    scan = start_scan(database)
    with database.control.write() as conn:
        conn.exec_driver_sql("UPDATE scan_sessions SET status = 'succeeded'")
    with pytest.raises(LeaseLost):
        report_of(database, scan).walked(ScanCounts())
