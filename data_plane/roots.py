"""Decides which folders this worker may open at all."""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from data_plane.file_states import signed64
from data_plane.jail import Jail


class Root(NamedTuple):
    """The folder of a library, and by what it is known since its last scan."""

    path: bytes
    device: int | None  # the id of its file system
    inode: int | None


class AnotherRoot(OSError):
    """Another folder stands where a library was; its files must not be taken for the library's."""

    def __init__(self, path: bytes) -> None:
        super().__init__(errno.ENODEV, "another folder than at the last scan", path)


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


def open_root(root: Root, open_jail: Callable[[bytes], Jail]) -> Jail:
    """Open the folder of a library, unless another one stands in its place."""
    jail = open_jail(root.path)
    if not _is_known(root, jail):
        jail.close()
        raise AnotherRoot(root.path)
    return jail


def recognising(
    roots: Iterable[Root], open_jail: Callable[[bytes], Jail]
) -> Callable[[bytes], Jail]:
    """Return what opens folders by their paths, and these only while they are what they were."""
    known = {root.path: root for root in roots}
    return lambda path: open_root(known.get(path, Root(path, None, None)), open_jail)


def _is_known(root: Root, jail: Jail) -> bool:
    # Without its disk, the mount point is a folder of its own.
    if root.inode is not None and signed64(jail.identity[1]) != root.inode:
        return False
    # With another disk it often has the same inode. File systems on a network have no id of their
    # own, and the number of their device changes with the order in which they are mounted.
    device = os.fstatvfs(jail.fileno()).f_fsid
    return not device or root.device is None or signed64(device) == root.device
