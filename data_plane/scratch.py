"""Files of work under way: each worker has its own folder, and who comes next clears up."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mediaplane.locations import LIFE, life_of


class Scratch:
    """The folder of one worker, locked for as long as the worker lives."""

    def __init__(self, directory: Path, worker_id: str) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = directory / worker_id
        self._life = _occupy(self.folder)

    @contextmanager
    def file(self) -> Iterator[BinaryIO]:
        """Yield a new file that is gone when the block ends."""
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".part") as file:
            yield file  # type: ignore[misc]

    def close(self) -> None:
        """Remove the folder and whatever is in it."""
        _remove(self.folder)
        os.close(self._life)


def sweep(directory: Path) -> None:
    """Remove the folders of workers that are gone; one that is only stopped still has its lock."""
    if not directory.is_dir():
        return
    names = {found.name.removesuffix(LIFE) for found in directory.iterdir()}
    for folder in map(directory.joinpath, names):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            continue
        with suppress(OSError):  # not ours to remove
            life = _lock(folder)
            if life is not None:
                _remove(folder)
                os.close(life)


def _occupy(folder: Path) -> int:
    # A sweeper that comes first takes it for a dead worker's, and is gone in a moment.
    while (life := _lock(folder)) is None:
        pass
    folder.mkdir(mode=0o700, exist_ok=True)
    return life


def _lock(folder: Path) -> int | None:
    """Lock the life of a folder; None when somebody has it, or has just removed it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(life_of(folder), flags, 0o600)
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), life_of(folder).stat()):
            return descriptor
    os.close(descriptor)
    return None


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    # Last: without it, another could begin to use the folder.
    life_of(folder).unlink(missing_ok=True)
