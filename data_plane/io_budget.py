"""A budget of bytes per second that all workers share: a row says when the next may be read."""

import logging
import threading

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from data_plane.executor import Control
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database, explain
from mediaplane.protocol.write_paths import BOOTSTRAP_IO, RESERVE_IO

log = logging.getLogger(__name__)

HASHING = "hash_io_global"
# Reserved at once: a quarter of a second's worth, so that the database has little to do with it.
_RESERVED_SECONDS = 0.25
_LEAST_BYTES = 64 << 10
_ERROR_SECONDS = 1.0

_LATER = {"sqlite": "max", "postgresql": "greatest"}
_RESERVE = (
    "UPDATE io_rate_limits SET updated_at = {now},"
    " next_available_at_ms = {later}(next_available_at_ms, {now}) + :taken_ms"
    " WHERE bucket_key = :bucket RETURNING next_available_at_ms - {now} - :taken_ms"
)
_BOOTSTRAP = (
    "INSERT INTO io_rate_limits (bucket_key, next_available_at_ms, updated_at)"
    " VALUES (:bucket, {now}, {now}) ON CONFLICT (bucket_key) DO NOTHING"
)


class IoBudget:
    """This worker's access to a budget; with no bytes per second, there is no limit."""

    def __init__(self, database: Database, bucket: str, bytes_per_second: float) -> None:
        self._database = database
        self._bucket = bucket
        self._bytes_per_second = bytes_per_second
        self._unpaid = 0
        self._turn = threading.Lock()
        words = {"now": NOW_SQL[database.dialect], "later": _LATER[database.dialect]}
        self._reserve, self._bootstrap = (
            text(sql.format(**words)) for sql in (_RESERVE, _BOOTSTRAP)
        )

    def spend(self, control: Control, length: int) -> None:
        """Pay for bytes that were read, by waiting until all that was read before is paid for."""
        if not self._bytes_per_second:
            return
        with self._turn:
            self._unpaid += length
            if self._unpaid < max(_LEAST_BYTES, self._bytes_per_second * _RESERVED_SECONDS):
                return
            due, self._unpaid = self._unpaid, 0
        try:
            seconds = self._wait_seconds(1000 * due / self._bytes_per_second)
        except DBAPIError as error:
            # Work that is done must not be lost for it; without a limit it would go too fast.
            log.warning("The budget %s cannot be used: %s", self._bucket, explain(error))
            seconds = _ERROR_SECONDS
        control.wait(seconds)

    def _wait_seconds(self, taken_ms: float) -> float:
        bound = {"bucket": self._bucket, "taken_ms": round(taken_ms)}
        with self._database.write(RESERVE_IO, BOOTSTRAP_IO) as conn:
            wait_ms = conn.execute(self._reserve, bound).scalar()
            if wait_ms is None:
                conn.execute(self._bootstrap, {"bucket": self._bucket})
                wait_ms = conn.execute(self._reserve, bound).scalar_one()
        return float(wait_ms) / 1000
