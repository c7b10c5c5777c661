"""The file systems that a walk over a library comes upon, and those that it should have."""

import os

from data_plane.executor import Seen
from data_plane.file_states import signed64
from data_plane.jail import Jail

_LARGEST = (1 << 63) - 1


class Mounts:
    """What tells the disks of a library apart, also disks that are plugged in one after another.

    A file is known by the id of its file system, as far as that has one: Linux gives the number of
    a device that is gone to the next one, on which other files have the same inodes.
    """

    def __init__(self, jail: Jail, known_device: int | None = None) -> None:
        # Of each device its number, as the system and as the database have it.
        self._ids: dict[int, int] = {}
        self._folders: list[bytes] = []
        self._root = jail.identity[0]
        # On another file system than before, nothing is known of any.
        self._is_known = signed64(jail.filesystem_id()) == known_device

    def enter(self, folder: bytes, descriptor: int, device: int) -> dict[int, int]:
        """Come to a folder; return how the database has the devices that were met so far."""
        if device not in self._ids:
            self._ids[device] = (os.fstatvfs(descriptor).f_fsid or device) & _LARGEST
        if device != self._root and not folder.startswith(tuple(self._folders)):
            self._folders.append(folder + b"/")
        return self._ids

    def is_away(self, file: Seen) -> bool:
        """Tell whether a file that is not there was on a disk that is not there either."""
        # An older version had the numbers of the system.
        has_disk = file.device in self._ids or file.device in self._ids.values()
        return (
            self._is_known and not has_disk and not file.rel_path.startswith(tuple(self._folders))
        )
