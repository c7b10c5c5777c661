"""The mark of a state of a file is the same whether Python or a database makes it."""

import pytest

from mediaplane.protocol.driver import query_directly
from mediaplane.protocol.versions import VERSION_SQL, version_of
from tests.support.databases import Databases


@pytest.mark.parametrize(
    ("size_bytes", "mtime_ns"),
    [(0, 0), (255, 16), (1, -1), (2**40, 1_700_000_000_123_456_789), (7, -(2**62)), (1, 2**63 - 1)],
)
def test_a_query_marks_a_file_as_the_planes_do(
    database: Databases, size_bytes: int, mtime_ns: int
) -> None:
    file = "(SELECT CAST(:size AS BIGINT) AS size_bytes, CAST(:mtime AS BIGINT) AS mtime_ns) AS f"
    sql = f"SELECT {VERSION_SQL[database.control.dialect]} AS version FROM {file}"
    with database.control.read() as conn:
        (row,) = query_directly(conn, sql, {"size": size_bytes, "mtime": mtime_ns})
    assert row["version"] == version_of(size_bytes, mtime_ns)
