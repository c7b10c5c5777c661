"""Two statements of PostgreSQL in one transaction and one trip, by the calls of libpq itself.

The driver's own pipeline sends each statement by itself and waits for several answers in turn,
which took longer than the statements.
"""

import re
import select
from collections.abc import Iterator, Mapping, MutableMapping
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# Where a connection keeps the names of what it has prepared, by the words.
_PREPARED = "mediaplane_prepared"


def trip(
    line: psycopg.Connection[Any],
    info: MutableMapping[Any, Any],
    statements: tuple[str, ...],
    bound: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Execute statements, whose parameters are written as `:name`; return the rows of the last.

    The server begins and ends their transaction. `info` lives as long as the connection.
    """
    try:
        result = _send(line, info, statements, bound)
    except psycopg.errors.InvalidSqlStatementName:
        # The driver lets go of all that is prepared when something was rolled back.
        info.pop(_PREPARED, None)
        result = _send(line, info, statements, bound)
    columns = [(result.fname(place) or b"").decode() for place in range(result.nfields)]
    reader = Transformer(line)
    reader.set_pgresult(result)
    rows = reader.load_rows(0, result.ntuples, tuple)
    return [dict(zip(columns, values, strict=True)) for values in rows]


def _send(
    line: psycopg.Connection[Any],
    info: MutableMapping[Any, Any],
    statements: tuple[str, ...],
    bound: Mapping[str, Any],
) -> PGresult:
    prepared: dict[str, bytes] = info.setdefault(_PREPARED, {})
    raw, fresh = line.pgconn, {}
    is_done = False
    raw.enter_pipeline_mode()
    try:
        for sql in statements:
            words, names = _numbered(sql)
            name = prepared.get(sql)
            if name is None:
                name = fresh[sql] = f"mediaplane_{len(prepared) + len(fresh)}".encode()
                raw.send_prepare(name, words)
            raw.send_query_prepared(name, [_dumped(bound[one]) for one in names])
        raw.pipeline_sync()
        results = list(_results(raw))
        raw.exit_pipeline_mode()
        is_done = True
    finally:
        if not is_done:
            line.close()  # nobody knows what is still to come from there
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
    prepared |= fresh
    return results[-1]


def _results(raw: PGconn) -> Iterator[PGresult]:
    """Wait for what each statement returns."""
    socket = select.poll()
    socket.register(raw.socket, select.POLLIN | select.POLLOUT)
    while raw.flush():
        socket.poll()
        raw.consume_input()  # the server may wait until it is heard
    socket.modify(raw.socket, select.POLLIN)
    while True:
        while raw.is_busy():
            socket.poll()
            raw.consume_input()
        result = raw.get_result()
        if result is None:
            continue  # the end of one statement
        if result.status == ExecStatus.PIPELINE_SYNC:
            return
        yield result


def _dumped(value: str | int | None) -> bytes | None:
    return None if value is None else str(value).encode()


@lru_cache(maxsize=64)
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement in the words of the server, and the names of its parameters in order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return re.sub(r":(\w+)", number, sql).encode(), tuple(names)
