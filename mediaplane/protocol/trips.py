"""Statements of PostgreSQL in one transaction and one trip, by the calls of libpq itself.

The driver's pipeline sends each statement by itself and waits several times, which together took
longer than a small change.
"""

import re
import select
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# Where a connection keeps the names of what it has prepared, by the words.
_PREPARED = "mediaplane_prepared"

Line = psycopg.Connection[Any]


def trip(
    line: Line,
    info: MutableMapping[Any, Any],
    statements: Sequence[str],
    bound: Mapping[str, str | int | None],
) -> list[tuple[Any, ...]]:
    """Execute statements, with parameters written as `:name`; return what the last one returns.

    The server begins and ends their transaction. `info` lives as long as the connection does.
    """
    try:
        result = _execute(line, info, statements, bound)
    except psycopg.errors.InvalidSqlStatementName:
        # The driver has the server forget all that is prepared when something was rolled back.
        info.pop(_PREPARED, None)
        result = _execute(line, info, statements, bound)
    reader = Transformer(line)
    reader.set_pgresult(result)
    return reader.load_rows(0, result.ntuples, tuple)


def _execute(
    line: Line,
    info: MutableMapping[Any, Any],
    statements: Sequence[str],
    bound: Mapping[str, str | int | None],
) -> PGresult:
    prepared: dict[str, bytes] = info.setdefault(_PREPARED, {})
    new = [sql for sql in statements if sql not in prepared]
    names = prepared | {
        sql: f"mediaplane_{place}".encode() for place, sql in enumerate(new, len(prepared))
    }
    results = _go_there_and_back(line, [(names[sql], sql) for sql in statements], new, bound)
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
    info[_PREPARED] = names
    return results[-1]


def _go_there_and_back(
    line: Line,
    named: Sequence[tuple[bytes, str]],
    new: Sequence[str],
    bound: Mapping[str, str | int | None],
) -> list[PGresult]:
    raw, encoding = line.pgconn, line.info.encoding
    is_back = False
    try:
        raw.enter_pipeline_mode()
        for name, sql in named:
            words, parameters = _numbered(sql)
            if sql in new:
                raw.send_prepare(name, words.encode(encoding))
            raw.send_query_prepared(name, [_dumped(bound[one], encoding) for one in parameters])
        raw.pipeline_sync()
        results = list(_results(raw))
        raw.exit_pipeline_mode()
        is_back = True
    finally:
        if not is_back:
            line.close()  # nobody knows what is still to come from there
    return results


def _results(raw: PGconn) -> Iterator[PGresult]:
    """Wait for what each statement returns."""
    socket = select.poll()
    socket.register(raw.socket, select.POLLIN | select.POLLOUT)
    while raw.flush():
        socket.poll()
        raw.consume_input()  # the server may wait to be heard before it hears more
    socket.modify(raw.socket, select.POLLIN)
    while True:
        while raw.is_busy():
            socket.poll()
            raw.consume_input()
        result = raw.get_result()
        if result is None:  # the end of a statement, or of everything
            if raw.status == ConnStatus.BAD:
                raise psycopg.OperationalError("the connection is lost")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return
        else:
            yield result


def _dumped(value: str | int | None, encoding: str) -> bytes | None:
    return None if value is None else str(value).encode(encoding)


@lru_cache(maxsize=64)
def _numbered(sql: str) -> tuple[str, list[str]]:
    """Return a statement in the words of the server, and the names of its parameters in order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return re.sub(r":(\w+)", number, sql), list(names)
