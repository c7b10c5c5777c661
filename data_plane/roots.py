"""Decides which folders this worker may open at all."""

import os
from collections.abc import Sequence

from data_plane.jail import Jail


class OutsideRoots(PermissionError):
    """The folder lies outside the roots that this worker was given."""

    def __init__(self, path: bytes) -> None:
        super().__init__(1, "outside the folders this worker may open (MEDIAPLANE_ROOTS)", path)


class Roots:
    """The folders that libraries must lie in; any folder when there are none."""

    def __init__(self, setting: str) -> None:
        self.allowed: Sequence[bytes] = [
            os.path.realpath(os.fsencode(part)) for part in setting.split(":") if part
        ]

    def open_jail(self, root: bytes) -> Jail:
        """Open a library's folder; what is opened beneath it stays beneath it."""
        jail = Jail(root)
        if self.allowed and not self._is_allowed(jail.real_path()):
            jail.close()
            raise OutsideRoots(root)
        return jail

    def _is_allowed(self, path: bytes) -> bool:
        return any(path == root or path.startswith(root.rstrip(b"/") + b"/")
                   for root in self.allowed)  # fmt: skip
