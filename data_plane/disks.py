"""Tells how much room the disks of this worker have, however long one of them takes to answer."""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from data_plane.jail import Jail
from data_plane.roots import Root, open_root
from mediaplane.inquiry import Inquiry

# Seconds that all disks together get to answer.
_PATIENCE_SECONDS = 1.0


class Room(NamedTuple):
    """The room on a disk."""

    free_bytes: int  # what others than the superuser may still write
    size_bytes: int


class Disks:
    """The disks of the state directory and of libraries, asked again and again."""

    def __init__(self, state: Path, open_jail: Callable[[bytes], Jail]) -> None:
        self._open_jail = open_jail
        self._of_state = Inquiry(lambda: _room(os.statvfs(state)))
        self._of_roots: dict[tuple[str, Root], Inquiry[Room]] = {}

    def look(self, roots: Mapping[str, Root]) -> tuple[Room | None, dict[str, Room]]:
        """Return the room of the state directory, and of the roots that answer, by library."""
        self._of_roots = {
            one: self._of_roots.get(one) or Inquiry(partial(self._ask, one[1]))
            for one in roots.items()
        }
        for inquiry in (self._of_state, *self._of_roots.values()):
            inquiry.begin()
        until = time.monotonic() + _PATIENCE_SECONDS
        found = {slug: _answer(asked, until) for (slug, _), asked in self._of_roots.items()}
        answered = {slug: room for slug, room in found.items() if room is not None}
        return _answer(self._of_state, until), answered

    def _ask(self, root: Root) -> Room:
        with open_root(root, self._open_jail) as jail:
            return _room(os.fstatvfs(jail.fileno()))


def _answer(inquiry: Inquiry[Room], until: float) -> Room | None:
    try:
        return inquiry.answer(until - time.monotonic())
    except OSError:
        return None  # not mounted, or it does not answer: TimeoutError is an OSError


def _room(found: os.statvfs_result) -> Room:
    return Room(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
