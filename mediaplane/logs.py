"""Writes log lines that quote nothing: no path, no SQL, no secret, and no way to forge a line."""

import logging
import traceback
from types import TracebackType

from sqlalchemy.exc import DBAPIError

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LogFormatter(logging.Formatter):
    """One line per record, and below it where an exception came from."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line, with whatever is not printable escaped."""
        return _printable(super().formatMessage(record))

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - logging's name
        """Return kinds and places of an exception and its causes, without their words.

        The words of an exception may quote a file's name, a statement or a password.
        """
        lines: list[str] = []
        error: BaseException | None = ei[1]
        while error is not None:
            lines.append(f"    {_kind(error)}")
            for frame in traceback.extract_tb(error.__traceback__):
                module = "/".join(frame.filename.rsplit("/", 2)[-2:])
                lines.append(f"      {module}:{frame.lineno} {frame.name}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n".join(lines)


def _kind(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, DBAPIError):
        code = getattr(error.orig, "sqlstate", None) or getattr(
            error.orig, "sqlite_errorname", None
        )
        return f"{name} ({code})" if code else name
    if isinstance(error, OSError) and error.errno is not None:
        return f"{name} ({error.strerror})"
    return name


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in line
    )
