"""Rows of pages: whatever PostgreSQL has written as one text is read as SQLite gives it."""

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mediaplane.protocol import texts
from mediaplane.protocol.driver import Values, query_rows
from tests.support.databases import Databases

TYPES = (str, str, int, float)
COLUMNS = "word TEXT, other TEXT, number BIGINT, share DOUBLE PRECISION"
words = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
rows = st.tuples(
    words,
    words,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
values_of = texts.reader(TYPES)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(row=rows)
@example(row=("", None, 0, 0.0))
@example(row=('a "quoted", (word)', '\\ \\\\ " "" ,\n\r\t', -1, 1e-300))
@example(row=('"', '","', 1, 0.1))
def test_the_values_of_a_row_are_those_that_were_written(database: Databases, row: Values) -> None:
    sql = "SELECT {page} FROM (SELECT {columns}) AS page"
    types = [column.split(" ", 1) for column in COLUMNS.split(", ")]
    is_sqlite = database.control.dialect == "sqlite"
    columns = ", ".join(
        f":{name} AS {name}" if is_sqlite else f"CAST(:{name} AS {kind}) AS {name}"
        for name, kind in types
    )
    query = sql.format(page="*" if is_sqlite else "page", columns=columns)
    bound = dict(zip((name for name, _ in types), row, strict=True))
    with database.control.read() as conn:
        (found,) = query_rows(conn, query, bound)
    assert values_of(found) == row
