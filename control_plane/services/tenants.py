"""Whose things a call is about: the caller's tenant, or the one that a caller of all names."""

import re

from mediaplane.errors import InvalidArgument, PermissionDenied
from mediaplane.identity import caller

_TENANT = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def chosen(named: str) -> str | None:
    """Return the tenant whose things are meant; None for those of all."""
    own = caller().tenant_id
    if not named:
        return own
    if not _TENANT.fullmatch(named):
        raise InvalidArgument(
            f"tenant is {named[:100]!r}; use 1 to 63 of a-z, 0-9 and -, with a letter or digit"
            " at both ends."
        )
    if own not in (None, named):
        raise PermissionDenied("The request names another tenant than yours; leave it out.")
    return named
