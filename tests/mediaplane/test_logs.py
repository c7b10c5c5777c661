"""A log line quotes nothing that a stranger must not read, and cannot be forged by a name."""

import logging
import sqlite3

import pytest
from sqlalchemy.exc import DBAPIError, OperationalError

from mediaplane.logs import LogFormatter

HOSTILE = [
    "evil\n2026-01-01 00:00:00 ERROR forged",
    "\x1b[2Jcleared",
    "\u202egnp.exe",
    "\u2066isolated\u2069",
    "\x00nul",
    "bell\x07",
    "\ud800lone",
]


def line(message: str, *args: object, error: BaseException | None = None) -> str:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("mediaplane.x", logging.ERROR, "", 0, message, args, info)
    return LogFormatter().format(record)


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error from cause
    return caught.value


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_on_its_line_and_shows_what_it_is(name: str) -> None:
    told = line("Cannot read %s", name)
    assert told.isprintable()
    assert "\\" in told


@pytest.mark.parametrize(
    "error",
    [
        OSError(13, "Permission denied", "/srv/secret/holiday.jpg"),
        RuntimeError("token mp_secret of /srv/secret"),
        OperationalError("SELECT secret FROM tokens", {"x": "secret"}, sqlite3.OperationalError()),
        KeyError("secret"),
        UnicodeDecodeError("utf-8", b"secret", 0, 1, "secret"),
    ],
)
def test_the_words_of_an_exception_are_not_quoted(error: Exception) -> None:
    told = line("It failed", error=raised(error, cause=ValueError("secret in the cause")))
    assert "secret" not in told
    assert "SELECT" not in told
    assert type(error).__name__ in told
    assert "ValueError" in told, "the cause is named as well"


def test_where_an_exception_came_from_is_told_without_the_way_there() -> None:
    told = line("It failed", error=raised(RuntimeError("x")))
    assert "mediaplane/test_logs.py:" in told
    assert " raised" in told
    assert __file__ not in told


def test_what_the_system_and_the_database_call_it_is_told() -> None:
    assert "(Permission denied)" in line(
        "x", error=raised(PermissionError(13, "Permission denied"))
    )
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect(":memory:").execute("SELECT * FROM nowhere")
    wrapped = DBAPIError.instance("SELECT", {}, caught.value, sqlite3.Error)
    assert "(SQLITE_ERROR)" in line("x", error=wrapped)
