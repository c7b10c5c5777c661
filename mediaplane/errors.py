"""Errors that a caller can do something about, each with its gRPC code and a stable reason.

Codes stand here by name: importing gRPC for them would slow down every command.
"""


class CallerError(Exception):
    """A request that cannot be carried out; the message says what happened and what to do."""

    code = "INVALID_ARGUMENT"
    reason = "INVALID_ARGUMENT"

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.details = details


class InvalidArgument(CallerError):
    """A field of the request has a value that can never be right."""


class InvalidPageToken(CallerError):
    """A page token that was not issued for this listing."""

    reason = "INVALID_PAGE_TOKEN"


class NotFound(CallerError):
    """The named resource does not exist."""

    code = "NOT_FOUND"
    reason = "NOT_FOUND"


class AlreadyExists(CallerError):
    """The resource exists already."""

    code = "ALREADY_EXISTS"
    reason = "ALREADY_EXISTS"


class ActiveJobExists(AlreadyExists):
    """A scan or hash job is pending or running, and there may be only one."""

    reason = "ACTIVE_JOB_EXISTS"


class Unauthenticated(CallerError):
    """Nobody can tell who is calling."""

    code = "UNAUTHENTICATED"
    reason = "UNAUTHENTICATED"


class PermissionDenied(CallerError):
    """The caller is known and may not do this."""

    code = "PERMISSION_DENIED"
    reason = "PERMISSION_DENIED"


class FailedPrecondition(CallerError):
    """The request makes sense, but not in the state that the resource is in."""

    code = "FAILED_PRECONDITION"
    reason = "FAILED_PRECONDITION"


class OutOfRange(CallerError):
    """A position beyond the end."""

    code = "OUT_OF_RANGE"
    reason = "OUT_OF_RANGE"


class Aborted(CallerError):
    """The thing changed while it was used; asking again may work."""

    code = "ABORTED"
    reason = "ABORTED"


class Overloaded(CallerError):
    """All places are taken."""

    code = "RESOURCE_EXHAUSTED"
    reason = "OVERLOADED"


class Unavailable(CallerError):
    """The server cannot go on now; asking again will work."""

    code = "UNAVAILABLE"
    reason = "UNAVAILABLE"


class UnusableDatabase(Exception):
    """The database cannot be used as it is; the message says what to do."""


class UnusableSettings(Exception):
    """A setting has a value that cannot be used; the message says what to do."""
