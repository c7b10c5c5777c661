"""Keeps the last entries of a worker's log in memory, and writes them down when it matters."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)

ENTRIES = 50_000
KEPT_DUMPS = 20
# Libraries keep the root's level: SQLAlchemy, for one, looks it up to decide whether to format
# every statement.
OWN_LOGGERS = ("data_plane", "mediaplane")
# Keeps the memory bounded, whatever an entry quotes.
_MAX_ENTRY_CHARS = 4000


class _Formatter(logging.Formatter):
    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


class FlightLog(logging.Handler):
    """The last 50,000 entries of one worker; nothing is on disk before `dump`."""

    def __init__(self, worker_id: str, directory: Path) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(
            _Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s")
        )
        self._worker_id = worker_id
        self._directory = directory
        self._entries: deque[str] = deque(maxlen=ENTRIES)
        self._dumped_at = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text alone, so that nothing that a record refers to is kept alive."""
        try:
            self._entries.append(_entry(self.format(record)))
        except Exception:  # noqa: BLE001 - like every handler: a bad log call must not end the work
            self.handleError(record)

    def dump(self, reason: str) -> Path:
        """Write all entries, oldest first, to a file of its own, which is whole or not there."""
        entries, dumped_at = self._snapshot()
        moment = datetime.fromtimestamp(dumped_at / 1000, UTC).strftime("%Y%m%dT%H%M%S")
        moment = f"{moment}.{dumped_at % 1000:03d}Z"
        about = f"worker {self._worker_id}, {len(entries)} entries, dumped {moment}: {reason}"
        path = self._directory / f"{self._worker_id}_{moment}.log"
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, [_entry(about), *entries])
        _drop_oldest(self._directory)
        return path

    def _snapshot(self) -> tuple[list[str], int]:
        self.acquire()
        try:
            # Each later than the last, so that no two dumps have the same name.
            self._dumped_at = max(time.time_ns() // 1_000_000, self._dumped_at + 1)
            return list(self._entries), self._dumped_at
        finally:
            self.release()


@contextmanager
def recording(flight_log: FlightLog) -> Iterator[None]:
    """Record all that the worker logs, and dump it when an exception ends a thread or the worker.

    Other handlers see the same records: they need a level of their own.
    """
    root, previous_hook = logging.getLogger(), threading.excepthook
    levels = {logger: logger.level for logger in map(logging.getLogger, OWN_LOGGERS)}

    def end_of_thread(args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, Exception):
            dump_unhandled(flight_log, args.exc_value)
        previous_hook(args)

    root.addHandler(flight_log)
    threading.excepthook = end_of_thread
    for logger in levels:
        logger.setLevel(logging.DEBUG)
    try:
        yield
    except Exception as error:
        # Here and not in sys.excepthook, which would come when nothing is recorded any more.
        dump_unhandled(flight_log, error)
        raise
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
        threading.excepthook = previous_hook
        root.removeHandler(flight_log)


def dump_unhandled(flight_log: FlightLog, error: Exception) -> None:
    """Write the log down because of an exception that nobody expected."""
    thread = threading.current_thread().name
    # For the dump alone: whoever handles the exception next shows it to people.
    log.debug("Nobody handled this exception", exc_info=error)
    try:
        flight_log.dump(f"unhandled {type(error).__name__} in thread {thread}")
    except OSError:
        log.exception("The flight log could not be written; make room or give access there")


def _entry(text: str) -> str:
    """Return text of which only the first line starts at the margin, so that none can be forged."""
    if len(text) > _MAX_ENTRY_CHARS:
        half = _MAX_ENTRY_CHARS // 2
        text = f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"
    return "\n    ".join(map(_printable, text.split("\n")))


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
    )


def _write(path: Path, lines: Sequence[str]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(descriptor)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _drop_oldest(directory: Path) -> None:
    """Keep a worker that crashes again and again from filling the disk."""
    # With the partial ones that a killed worker left.
    dumps = sorted(directory.glob("*_*.log*"), key=lambda path: path.name.rpartition("_")[2])
    for path in dumps[:-KEPT_DUMPS]:
        path.unlink(missing_ok=True)
