"""Compares the summary of duplicate groups with the files, and writes it anew where it is wrong."""

from typing import NamedTuple

from control_plane.policy import regrouping
from control_plane.store import groups
from mediaplane.protocol.database import Database
from mediaplane.protocol.duplicates import summarise

# Per query and per transaction: others get their turn in between.
_SPAN_FILES = 10_000


class Findings(NamedTuple):
    """What a comparison found."""

    groups: int
    wrong_groups: int


def verify(database: Database, tenant_id: str | None, *, repair: bool) -> Findings:
    """Compare span by span of the hashes; with `repair`, count the groups that are wrong anew."""
    regrouping.settle_all(database)
    found = wrong_groups = 0
    until: groups.Key | None = ("", b"")
    while until is not None:
        with database.read() as conn:
            span = groups.span(conn, until, _SPAN_FILES)
            found += groups.count(conn, tenant_id, span)
            wrong = groups.wrong(conn, tenant_id, span)
        if wrong and repair:
            with database.write() as conn:
                summarise(conn, wrong)
        wrong_groups += len(wrong)
        until = span.until
    return Findings(found, wrong_groups)
