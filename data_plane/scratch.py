"""Files of work under way: each worker has its own folder, and who comes next clears up."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._life)


def sweep(directory: Path) -> None:
    """Remove the folders of workers that are gone; one that is only stopped still has its lock."""
    if not directory.is_dir():
        return
    for folder in directory.iterdir():
        life = _lock(folder)
        if life is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(life)


def _occupy(folder: Path) -> int:
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        life = _lock(folder)
        # A sweeper may have come between the two, and have taken it for a dead worker's.
        if life is not None:
            if folder.exists() and os.path.samestat(os.fstat(life), folder.stat()):
                return life
            os.close(life)


def _lock(folder: Path) -> int | None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None  # not a folder of a worker, or swept by another one just now
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
