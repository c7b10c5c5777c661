"""One thing that was looked at, how it is, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How it is with what was looked at."""

    OK = "ok"
    # It works, and something is to be known about it.
    WARNING = "warning"
    # Something does not work, or will not.
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """What one look has shown."""

    check: str
    level: Level
    message: str
    # What to do; empty when all is well.
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    """Say that all is well."""
    return Finding(check, Level.OK, message)


def warning(check: str, message: str, advice: str) -> Finding:
    """Say what is to be known."""
    return Finding(check, Level.WARNING, message, advice)


def problem(check: str, message: str, advice: str) -> Finding:
    """Say what does not work."""
    return Finding(check, Level.PROBLEM, message, advice)
