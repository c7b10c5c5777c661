"""Hashes small files in memory: as little Python as possible for each, and no promise less."""

import os
from collections.abc import Iterable
from stat import S_IFREG

from data_plane.digests import CHANGED, ENDS, HASHERS, Answer, hash_at_once, is_same, read_at
from data_plane.executor import ToHash
from data_plane.file_states import explain
from data_plane.jail import READ_NAME, Jail

# A descriptor, and what was found before it was opened.
Opened = tuple[int, os.stat_result]

_READ_QUIETLY = READ_NAME | os.O_NOATIME
# What `stat.S_ISREG` looks at, without the call.
_FORMAT = 0o170000


class Folders:
    """Opens files below a root; the folder of the last one stays open for the next."""

    def __init__(self, jail: Jail) -> None:
        self.jail = jail
        self.path: bytes | None = None
        self.descriptor = -1

    def enter(self, path: bytes) -> None:
        """Open a folder in place of the last one."""
        self.close()
        self.descriptor = self.jail.open_dir(path)
        self.path = path

    def open_file(self, rel_path: bytes) -> Opened:
        """Open a file, and return what was found before."""
        folder = rel_path.rpartition(b"/")[0]
        if folder != self.path:
            self.enter(folder)
        return self.jail.open_file_in(self.descriptor, rel_path)

    def close(self) -> None:
        """Close the last folder."""
        if self.path is not None:
            self.path = None
            os.close(self.descriptor)


def answer_small(folders: Folders, files: Iterable[ToHash]) -> list[Answer]:
    """Hash files of a block at most.

    In one piece, since each call would cost a hundredth of what a file takes. It knows only files
    that are as they should be: for others the longer way finds out what is wrong.
    """
    answers: list[Answer] = []
    loud_owners = folders.jail.noatime_denied_owners
    for file in files:
        _id, _root, rel_path, size_bytes, mtime_ns, algorithm = file
        folder, _slash, name = rel_path.rpartition(b"/")
        try:
            if folder != folders.path:
                folders.enter(folder)
            # Before it is opened: to open a device can be a deed in itself.
            found = os.stat(name, dir_fd=folders.descriptor, follow_symlinks=False)
            if (
                found.st_mtime_ns != mtime_ns
                or found.st_size != size_bytes
                or found.st_mode & _FORMAT != S_IFREG
                or algorithm == ENDS
            ):
                answers.append(_answer_slowly(folders, file))
                continue
            flags = READ_NAME if found.st_uid in loud_owners else _READ_QUIETLY
            descriptor = os.open(name, flags, dir_fd=folders.descriptor)
        except (OSError, ValueError):  # the latter for names that no system call takes
            answers.append(_answer_slowly(folders, file))
            continue
        try:
            try:
                content = os.read(descriptor, size_bytes)
                if len(content) < size_bytes:
                    content = read_at(descriptor, 0, size_bytes)
                digest = HASHERS[algorithm](content).digest()
                answer = digest if is_same(os.fstat(descriptor), found) else CHANGED
            finally:
                os.close(descriptor)
        except OSError as error:
            answer = explain(error)
        answers.append(answer)
    return answers


def _answer_slowly(folders: Folders, file: ToHash) -> Answer:
    _id, _root, rel_path, size_bytes, mtime_ns, algorithm = file
    try:
        return hash_at_once(*folders.open_file(rel_path), size_bytes, mtime_ns, algorithm)
    except OSError as error:
        return explain(error)
