"""Learns from the kernel, by inotify, that something below a folder has changed."""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress

Identity = tuple[int, int]

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_Q_OVERFLOW, _IGNORED = 0x4000, 0x8000
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK, _ISDIR = 0x1000000, 0x2000000, 0x4000000, 0x40000000
# Nothing that comes from reading: our own hashing must not look like a change.
_CHANGES = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
    | _DELETE_SELF | _MOVE_SELF
)  # fmt: skip

# What says that a folder is no more, or is not for us: all others mean that changes go unseen.
_PASSED_OVER = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM})
_HEADER = struct.Struct("iIII")
_BUFFER_BYTES = 256 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """The kernel's watches on a folder and on every folder below it, for as long as it is open."""

    def __init__(
        self, root: bytes, *, ignored: frozenset[Identity], crosses_filesystems: bool
    ) -> None:
        """Watch a folder; raises OSError where the kernel's limits do not allow it."""
        # False once the folder was deleted or unmounted, even if another is in its place by now.
        self.is_alive = True
        self._root = root
        self._ignored = ignored
        self._device = None if crosses_filesystems else os.stat(root).st_dev
        self._paths: dict[int, bytes] = {}
        self._descriptor = _checked(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        try:
            self._add(root)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._descriptor)

    def has_changed(self) -> bool:
        """Tell whether anything changed since the last call; new folders are watched from now on.

        Raises OSError where a new folder is one more than the kernel's limits allow.
        """
        is_changed = False
        while events := self._read():
            for number, mask, name in _parsed(events):
                is_changed |= self._take(number, mask, name)
        return is_changed

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _BUFFER_BYTES)
        except BlockingIOError:
            return b""

    def _take(self, number: int, mask: int, name: bytes) -> bool:
        """Follow folders that come and go; returns whether the event is a change."""
        if mask & _Q_OVERFLOW:
            self._add(self._root)  # some of the folders that came may have gone unheard
            return True
        if mask & _IGNORED:
            if self._paths.pop(number, None) == self._root:
                self.is_alive = False
            return not self.is_alive
        folder = self._paths.get(number)
        if folder is None:
            return False  # of a folder that was moved away in the meantime
        path = os.path.join(folder, name)
        if mask & _ISDIR and mask & _MOVED_FROM:
            self._drop(path)
            self._add(path)  # another may have come in its place by the same stroke
        elif mask & _ISDIR and mask & (_CREATE | _MOVED_TO):
            self._add(path)
        return True

    def _add(self, path: bytes) -> None:
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            # Listed only once it is watched: what comes in between is seen twice, not never.
            if self._watch(folder):
                waiting += _subfolders(folder)

    def _watch(self, folder: bytes) -> bool:
        is_root = folder == self._root
        flags = _ONLYDIR | _EXCL_UNLINK | (0 if is_root else _DONT_FOLLOW)
        try:
            info = os.stat(folder, follow_symlinks=is_root)
            if not is_root and not self._is_ours(info):
                return False
            number = _checked(
                _libc.inotify_add_watch(self._descriptor, folder, ctypes.c_uint32(_CHANGES | flags))
            )
        except OSError as error:
            if error.errno in _PASSED_OVER:
                return False
            raise
        self._paths[number] = folder
        return True

    def _is_ours(self, info: os.stat_result) -> bool:
        return (
            stat.S_ISDIR(info.st_mode)
            and (info.st_dev, info.st_ino) not in self._ignored
            and self._device in (None, info.st_dev)
        )

    def _drop(self, path: bytes) -> None:
        """Forget a folder that was moved away; where it is moved to, it is found again."""
        below = path + b"/"
        gone = [n for n, at in self._paths.items() if at == path or at.startswith(below)]
        for number in gone:
            del self._paths[number]
            # Refused where the folder was deleted by now, and the watch with it.
            _libc.inotify_rm_watch(self._descriptor, number)


def _subfolders(folder: bytes) -> list[bytes]:
    found: list[bytes] = []
    with suppress(OSError), os.scandir(folder) as entries:
        found += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def _parsed(events: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of the watch, the mask and the name of each event."""
    start = 0
    while start < len(events):
        number, mask, _, name_bytes = _HEADER.unpack_from(events, start)
        start += _HEADER.size + name_bytes
        yield number, mask, events[start - name_bytes : start].rstrip(b"\0")


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
