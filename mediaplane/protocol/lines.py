"""Queries that libpq itself sends over a connection of PostgreSQL, each prepared there once.

Imported with the driver alone, which SQLite does without.
"""

import re
import select
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from psycopg import Connection, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

_Result = TypeVar("_Result")

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
        return self._loaded(self._ask(sql, bound))

    def texts(self, sql: str, bound: Mapping[str, Any]) -> list[Any]:
        """Return the one column of such a query as the server has written it."""
        result = self._ask(sql, bound)
        value = result.get_value
        return [value(place, 0) for place in range(result.ntuples)]

    def together(
        self, statements: Sequence[str], bound: Mapping[str, str | int | None]
    ) -> list[tuple[Any, ...]]:
        """Execute statements in one transaction and one trip; return what the last one returns.

        The server begins and ends the transaction. The driver's pipeline waits several times,
        which together took longer than a small change.
        """
        result = self._again_if_forgotten(lambda: self._send(statements, bound))
        return self._loaded(result)

    def _send(self, statements: Sequence[str], bound: Mapping[str, str | int | None]) -> PGresult:
        numbered = [_numbered(sql) for sql in statements]
        named = [
            (self._name((words, ())), [_as_text(bound[one]) for one in names])
            for words, names in numbered
        ]
        is_back = False
        try:
            self._pgconn.enter_pipeline_mode()
            for name, values in named:
                self._pgconn.send_query_prepared(name, values)
            self._pgconn.pipeline_sync()
            results = list(_results(self._pgconn))
            self._pgconn.exit_pipeline_mode()
            is_back = True
        finally:
            if not is_back:
                self._raw.close()  # nobody knows what is still to come from there
        return [_checked(result) for result in results][-1]

    def _loaded(self, result: PGresult) -> list[tuple[Any, ...]]:
        types = Transformer(self._raw)
        types.set_pgresult(result)
        return types.load_rows(0, result.ntuples, tuple)

    def _ask(self, sql: str, bound: Mapping[str, Any]) -> PGresult:
        words, names = _numbered(sql)
        types = Transformer(self._raw)
        values: Any = types.dump_sequence(
            [bound[name] for name in names], [PyFormat.AUTO] * len(names)
        )
        key = words, tuple(types.types or ())
        if self._pgconn.transaction_status != TransactionStatus.IDLE:
            # Nothing may fail in a transaction, and so nothing is taken for prepared.
            return _checked(self._pgconn.exec_params(words.encode(), values, key[1], types.formats))
        return self._again_if_forgotten(
            lambda: _checked(self._pgconn.exec_prepared(self._name(key), values, types.formats))
        )

    def _again_if_forgotten(self, execute: Callable[[], _Result]) -> _Result:
        try:
            return execute()
        except errors.InvalidSqlStatementName:
            # Deallocated, as the driver does with all when a transaction is rolled back.
            self._names.clear()
            return execute()

    def _name(self, key: tuple[str, tuple[int, ...]]) -> bytes:
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._prepare(*key)
        else:
            self._names.move_to_end(key)
        return name

    def _prepare(self, words: str, types: tuple[int, ...]) -> bytes:
        if len(self._names) >= KEPT:
            _, oldest = self._names.popitem(last=False)
            _checked(self._pgconn.exec_(b"DEALLOCATE " + oldest), ExecStatus.COMMAND_OK)
        self._prepared += 1
        name = b"mediaplane_%d" % self._prepared
        prepared = self._pgconn.prepare(name, words.encode(), types)
        _checked(prepared, ExecStatus.COMMAND_OK)
        return name


def _results(line: PGconn) -> Iterator[PGresult]:
    """Wait for what each statement of a pipeline returns."""
    socket = select.poll()
    socket.register(line.socket, select.POLLIN | select.POLLOUT)
    while line.flush():
        socket.poll()
        line.consume_input()  # the server may wait to be heard before it hears more
    socket.modify(line.socket, select.POLLIN)
    while True:
        while line.is_busy():
            socket.poll()
            line.consume_input()
        result = line.get_result()
        if result is None:  # the end of a statement, or of everything
            if line.status == ConnStatus.BAD:
                raise errors.OperationalError("the connection is lost")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return
        else:
            yield result


def _as_text(value: str | int | None) -> bytes | None:
    return None if value is None else str(value).encode()


def _checked(result: PGresult, wanted: ExecStatus = ExecStatus.TUPLES_OK) -> PGresult:
    if result.status != wanted:
        raise errors.error_from_result(result)
    return result


@lru_cache(maxsize=256)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a query with its parameters as PostgreSQL writes them, and their names in order."""
    names = tuple(dict.fromkeys(re.findall(r":(\w+)", sql)))
    return re.sub(r":(\w+)", lambda found: f"${names.index(found[1]) + 1}", sql), names
