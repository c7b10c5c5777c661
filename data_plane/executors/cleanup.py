"""Removes the thumbnails of a group: their records and their files, and nothing else."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from data_plane.cache import thumbnail_path
from data_plane.executor import Context
from data_plane.jail import Jail
from mediaplane.protocol.values import ThumbnailFormat

Removed = Sequence[tuple[int, ThumbnailFormat]]


@dataclass(frozen=True)
class CleanupTask:
    """Remove the thumbnails of a group that are finished with."""

    # Deletes their records, a batch at a time, and yields whose files are nobody's from then on.
    # Files that are left behind by an accident are swept later; a record without a file would lie.
    forget: Callable[[], Iterator[Removed]]


def clean_up(task: CleanupTask, ctx: Context) -> None:
    """Remove all records, and the files of each batch after its records."""
    with Jail(ctx.state) as jail:
        for batch in task.forget():
            for thumbnail_id, file_format in batch:
                _remove(jail, thumbnail_path(thumbnail_id, file_format))
            ctx.control.check()


def _remove(jail: Jail, path: str) -> None:
    folder, _, name = path.rpartition("/")
    with suppress(FileNotFoundError):
        folder_fd = jail.open_dir(os.fsencode(folder))
        try:
            os.unlink(name, dir_fd=folder_fd)
        finally:
            os.close(folder_fd)
