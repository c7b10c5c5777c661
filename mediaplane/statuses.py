"""Turns exceptions into the statuses that callers see, and keeps everything internal inside."""

import logging
import sqlite3
import uuid

from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mediaplane.errors import CallerError

log = logging.getLogger(__name__)

ERROR_DOMAIN = "mediaplane"


def status_of(error: Exception, method: str) -> status_pb2.Status:
    """Return the status of a call that ended in an error; what is unexpected is logged."""
    if isinstance(error, CallerError):
        return _rich(error.code, str(error), error.reason, error.details)
    if _is_passing(error):
        log.error("%s: the database does not answer", method, exc_info=error)
        return _rich(
            "UNAVAILABLE",
            "The database does not answer right now; try again.",
            "DATABASE_UNAVAILABLE",
            {},
        )
    reference = uuid.uuid4().hex[:12]
    log.error("%s failed, reference %s", method, reference, exc_info=error)
    return _rich(
        "INTERNAL",
        f"Something went wrong inside the server; its log has the details under {reference}.",
        "INTERNAL",
        {"reference": reference},
    )


def _is_passing(error: Exception) -> bool:
    """Tell whether the database could not answer, as opposed to a question that is wrong."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeoutError)
    # SQLite says OperationalError of wrong SQL too, with the plainest of its codes.
    code = getattr(error.orig, "sqlite_errorcode", None)
    is_operational = isinstance(error, OperationalError) and code != sqlite3.SQLITE_ERROR
    return is_operational or error.connection_invalidated


def _rich(code: str, message: str, reason: str, details: dict[str, str]) -> status_pb2.Status:
    info = error_details_pb2.ErrorInfo(reason=reason, domain=ERROR_DOMAIN, metadata=details)
    packed = any_pb2.Any()
    packed.Pack(info)
    return status_pb2.Status(code=code_pb2.Code.Value(code), message=message, details=[packed])
