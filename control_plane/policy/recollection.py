"""Remembers what was asked for lately, for guesses that need not be right."""

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Recollection(Generic[_Key]):
    """The keys noted last: at least so many as it is told to keep, and at most twice as many.

    Threads share it without a lock. One that interferes with another may have keys forgotten
    early, and a guess is wrong then.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._newest: set[_Key] = set()
        self._older: set[_Key] = set()

    def has_any(self, keys: Collection[_Key]) -> bool:
        """Tell whether any of these is remembered."""
        return not (self._newest.isdisjoint(keys) and self._older.isdisjoint(keys))

    def note(self, keys: Collection[_Key]) -> None:
        """Remember these too."""
        if len(self._newest) >= self._kept:
            self._newest, self._older = set(), self._newest
        self._newest.update(keys)
