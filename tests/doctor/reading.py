"""Reads what the doctor says."""

from collections.abc import Iterable

from mediaplane.doctor.finding import Finding, Level


def levels(findings: Iterable[Finding], check: str) -> list[str]:
    """Return how it is with one thing, and make sure that whatever is wrong has advice."""
    found = list(findings)
    for one in found:
        assert bool(one.advice) == (one.level is not Level.OK), one
        assert one.message.endswith((".", ")")) or one.level is not Level.OK, one
    return [str(one.level) for one in found if one.check == check]


def only(findings: Iterable[Finding], check: str, level: Level) -> Finding:
    """Return the one finding of a kind."""
    (found,) = [one for one in findings if one.check == check and one.level is level]
    assert found.advice or level is Level.OK
    return found
