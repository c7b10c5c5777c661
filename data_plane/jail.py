"""Opens files beneath a root so that no link, rename or special file can lead outside or block."""

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Literal, Self

from mediaplane.paths import PathRefused, check_rel_path

Resolver = Literal["openat2", "walk"]
OpenAt = Callable[[int, bytes, int], int]

PROC_FD = b"/proc/self/fd/%d"

_SYS_OPENAT2 = 437
_AT_FDCWD = -100
_OPEN_HOW_BYTES = 24
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08
_RESOLVE = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
# EXDEV for a plain name: a rename carried it out of the root during the lookup.
_RETRIES = {errno.EAGAIN: 64, errno.EINTR: 64, errno.EXDEV: 1}

_PATH = os.O_PATH | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
# Not to wait for a FIFO that takes the file's place after it was looked at.
READ_NAME = _READ | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_NAMES = (b"", b".", b"..")
_SCAN = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW

_WHY = {
    "symlink": "a symbolic link is on the way; links are not followed, use the real path",
    "not_regular": "it is not a regular file; only regular files are read",
    "escapes": "it was moved out of the root while being opened; scan again",
    "changed": "it was replaced while being opened; try again",
}

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
]


class JailRefused(OSError):
    """The jail would not open this; absent and unreadable files raise plain OSErrors instead."""

    def __init__(self, reason: str, rel: bytes) -> None:
        why = _WHY.get(reason, f"not a plain relative path ({reason}); pass one without '..'")
        super().__init__(errno.EPERM, f"refused to open: {why}", rel)
        self.reason = reason
        self.rel = rel

    # OSError rebuilds itself from errno and text, which would fail in a process pool.
    def __reduce__(self) -> tuple[type[Self], tuple[str, bytes]]:
        return type(self), (self.reason, self.rel)


class Jail:
    """A root directory held by descriptor, so renaming the root or its parents changes nothing."""

    def __init__(self, root: bytes, resolver: Resolver | None = None) -> None:
        if not root.startswith(b"/"):
            message = f"jail root must be an absolute path, got {root!r}"
            raise ValueError(message)
        self._root_fd = os.open(root, _PATH | os.O_DIRECTORY)
        info = os.fstat(self._root_fd)
        self.identity: tuple[int, int] = (info.st_dev, info.st_ino)
        self.resolver: Resolver = resolver or ("openat2" if _has_openat2() else "walk")
        self._resolve: OpenAt = _openat2 if self.resolver == "openat2" else _walk
        self.noatime_denied_owners: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the root; later opens fail with EBADF. Closing twice is harmless."""
        if self._root_fd >= 0:
            # Cleared first: the number may belong to another thread's file right after the close.
            root_fd, self._root_fd = self._root_fd, -1
            os.close(root_fd)

    def fileno(self) -> int:
        """Return the descriptor of the root, for a process that is to have the same one."""
        return self._root_fd

    def real_path(self) -> bytes:
        """Return where the root really lies, as the kernel says of the open descriptor."""
        return os.readlink(PROC_FD % self._root_fd)

    def filesystem_id(self) -> int:
        """Return what tells the root's file system from another one in its place."""
        return os.fstatvfs(self._root_fd).f_fsid or self.identity[0]

    def open_file(self, rel: bytes) -> int:
        """Open a regular file for reading; the caller closes the descriptor."""
        _check(rel)
        try:
            return self._open_regular(self._resolve(self._root_fd, rel, _PATH), rel)
        except OSError as error:
            error.filename = rel
            raise

    def open_file_in(self, folder_fd: int, rel: bytes) -> tuple[int, os.stat_result]:
        """Open a regular file of a folder that `open_dir` has opened; return what was found there.

        For many small files: of the system calls that `open_file` makes, a third is left. What was
        opened is what was found if it still has that inode; the caller looks when it has read.
        """
        name = rel.rpartition(b"/")[2]
        if name in _NO_NAMES or b"\0" in name:
            _check(rel)
        try:
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            _check_regular(found, rel)
            return self._quietly(_open_at, folder_fd, name, READ_NAME, found.st_uid), found
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise JailRefused("symlink", rel) from None
            error.filename = rel
            raise

    def _open_regular(self, path_fd: int, rel: bytes) -> int:
        try:
            found = os.fstat(path_fd)
            _check_regular(found, rel)
            return self._reopen(path_fd, found, rel)
        finally:
            os.close(path_fd)

    def open_dir(self, rel: bytes | None = None) -> int:
        """Open a directory for scanning, the root itself for None or b''; the caller closes it."""
        if not rel:
            return self._open_listing(self._root_fd)
        _check(rel)
        try:
            path_fd = self._resolve(self._root_fd, rel, _PATH | os.O_DIRECTORY)
            try:
                return self._open_listing(path_fd)
            finally:
                os.close(path_fd)
        except OSError as error:
            error.filename = rel
            raise

    def _open_listing(self, path_fd: int) -> int:
        owner = os.fstat(path_fd).st_uid
        return self._quietly(_open_at, path_fd, b".", _SCAN, owner)

    # Opening the path itself would block on a FIFO or wake a device that took the file's place.
    def _reopen(self, path_fd: int, found: os.stat_result, rel: bytes) -> int:
        try:
            fd = self._quietly(_open_at, path_fd, PROC_FD % path_fd, _READ, found.st_uid)
        except FileNotFoundError:
            fd = self._open_by_name(found, rel)
        _check_same(fd, found, rel)
        return fd

    # Without /proc a name must be looked up again, so what it names may have changed meanwhile.
    def _open_by_name(self, found: os.stat_result, rel: bytes) -> int:
        flags = _READ | os.O_NONBLOCK
        fd = self._quietly(self._resolve, self._root_fd, rel, flags, found.st_uid)
        os.set_blocking(fd, True)
        return fd

    # Reading must leave the source tree untouched, but only owners may suppress access times.
    def _quietly(self, open_at: OpenAt, dir_fd: int, path: bytes, flags: int, owner: int) -> int:
        if owner in self.noatime_denied_owners:
            return open_at(dir_fd, path, flags)
        try:
            return open_at(dir_fd, path, flags | os.O_NOATIME)
        except PermissionError as error:
            if error.errno != errno.EPERM:
                raise
        fd = open_at(dir_fd, path, flags)
        self.noatime_denied_owners.add(owner)
        return fd


def _open_at(dir_fd: int, path: bytes, flags: int) -> int:
    return os.open(path, flags, dir_fd=dir_fd)


def _check(rel: bytes) -> None:
    try:
        check_rel_path(rel)
    except PathRefused as refused:
        raise JailRefused(refused.reason, rel) from None


def _check_regular(found: os.stat_result, rel: bytes) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise JailRefused("symlink" if stat.S_ISLNK(found.st_mode) else "not_regular", rel)


def _check_same(fd: int, found: os.stat_result, rel: bytes) -> None:
    """Close an opened file that is another than was looked at."""
    opened = os.fstat(fd)
    if opened.st_ino != found.st_ino or opened.st_dev != found.st_dev:
        os.close(fd)
        raise JailRefused("changed", rel)


# One per set of flags, shared by all threads and never freed: the kernel only reads it.
@cache
def _open_how(flags: int) -> ctypes.c_void_p:
    how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE)
    return ctypes.cast(how, ctypes.c_void_p)


@cache
def _has_openat2() -> bool:
    fd = _syscall(_SYS_OPENAT2, _AT_FDCWD, b".", _open_how(_PATH), _OPEN_HOW_BYTES)
    if fd >= 0:
        os.close(fd)
        return True
    # EPERM is how container seccomp profiles older than the call refuse it.
    return ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)


def _openat2(root_fd: int, rel: bytes, flags: int) -> int:
    fd: int = _syscall(_SYS_OPENAT2, root_fd, rel, _open_how(flags), _OPEN_HOW_BYTES)
    return fd if fd >= 0 else _openat2_again(root_fd, rel, flags, ctypes.get_errno())


def _openat2_again(root_fd: int, rel: bytes, flags: int, code: int) -> int:
    failures = [code]
    while failures.count(code) <= _RETRIES.get(code, 0):
        fd: int = _syscall(_SYS_OPENAT2, root_fd, rel, _open_how(flags), _OPEN_HOW_BYTES)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        failures.append(code)
    raise _openat2_error(code, rel)


def _openat2_error(code: int, rel: bytes) -> OSError:
    reason = {errno.ELOOP: "symlink", errno.EXDEV: "escapes", errno.EAGAIN: "changed"}.get(code)
    return JailRefused(reason, rel) if reason else OSError(code, os.strerror(code), rel)


def _walk(root_fd: int, rel: bytes, flags: int) -> int:
    *parents, name = rel.split(b"/")
    fd, at = root_fd, name
    try:
        for at in parents:
            inner = os.open(at, _PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            if fd != root_fd:
                os.close(fd)
            fd = inner
        at = name
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
    except OSError as error:
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(fd, at)):
            raise JailRefused("symlink", rel) from None
        raise
    finally:
        if fd != root_fd:
            os.close(fd)


# Only names the reason: the open has already failed, so a change in between is harmless.
def _is_link(dir_fd: int, name: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False
