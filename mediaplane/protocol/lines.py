"""Queries that libpq itself sends over a connection of PostgreSQL, each prepared there once.

Imported with the driver alone, which SQLite does without.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from psycopg import Connection, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

# Statements that a connection keeps prepared.
KEPT = 64


class Line:
    """A connection, and what is prepared on it.

    Around a query the driver runs a good deal of Python, most of it to wait in whatever way its
    caller wishes. The processor of an idle system is cold, and there this is a quarter of the time
    of a query for fifty rows. Here libpq waits, and lets other threads run meanwhile.
    """

    def __init__(self, raw: Connection[Any]) -> None:
        self._raw = raw
        self._pgconn = raw.pgconn
        # Names by words and types of the parameters, the one used last at the end.
        self._names: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        self._prepared = 0

    def values(self, sql: str, bound: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Execute a query with its parameters written as `:name`; its errors are the driver's."""
        result = self._ask(sql, bound)
        types = Transformer(self._raw)
        types.set_pgresult(result)
        return types.load_rows(0, result.ntuples, tuple)

    def texts(self, sql: str, bound: Mapping[str, Any]) -> list[Any]:
        """Return the one column of such a query as the server has written it."""
        result = self._ask(sql, bound)
        value = result.get_value
        return [value(place, 0) for place in range(result.ntuples)]

    def _ask(self, sql: str, bound: Mapping[str, Any]) -> PGresult:
        words, names = _numbered(sql)
        types = Transformer(self._raw)
        values = types.dump_sequence([bound[name] for name in names], [PyFormat.AUTO] * len(names))
        key = words, tuple(types.types or ())
        if self._pgconn.transaction_status != TransactionStatus.IDLE:
            # Nothing may fail in a transaction, and so nothing is taken for prepared.
            return _checked(self._pgconn.exec_params(words.encode(), values, key[1], types.formats))
        try:
            return self._execute(key, values, types.formats)
        except errors.InvalidSqlStatementName:
            # Deallocated, as the driver does with all when a transaction is rolled back.
            self._names.clear()
            return self._execute(key, values, types.formats)

    def _execute(self, key: tuple[str, tuple[int, ...]], values: Any, formats: Any) -> PGresult:
        name = self._names.get(key)
        if name is None:
            name = self._prepare(*key)
            self._names[key] = name
        else:
            self._names.move_to_end(key)
        return _checked(self._pgconn.exec_prepared(name, values, formats))

    def _prepare(self, words: str, types: tuple[int, ...]) -> bytes:
        if len(self._names) >= KEPT:
            _, oldest = self._names.popitem(last=False)
            _checked(self._pgconn.exec_(b"DEALLOCATE " + oldest), ExecStatus.COMMAND_OK)
        self._prepared += 1
        name = b"mediaplane_%d" % self._prepared
        prepared = self._pgconn.prepare(name, words.encode(), types)
        _checked(prepared, ExecStatus.COMMAND_OK)
        return name


def _checked(result: PGresult, wanted: ExecStatus = ExecStatus.TUPLES_OK) -> PGresult:
    if result.status != wanted:
        raise errors.error_from_result(result)
    return result


@lru_cache(maxsize=256)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a query with its parameters as PostgreSQL writes them, and their names in order."""
    names = tuple(dict.fromkeys(re.findall(r":(\w+)", sql)))
    return re.sub(r":(\w+)", lambda found: f"${names.index(found[1]) + 1}", sql), names
