"""The state directory: whose it is, how much room it has, and what dead workers left in it."""

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mediaplane.doctor.finding import Finding, ok, problem, warning
from mediaplane.locations import Locations, life_of

_LITTLE_BYTES = 1 << 30
_TOO_LITTLE_BYTES = 64 << 20
_OTHERS = 0o077
# What planes write into, beside the directory itself.
_FOLDERS = ("run", "logs", "scratch", "cache")


def look(locations: Locations) -> Iterator[Finding]:
    """Look at the directory, what is in it, and the disk that it lies on."""
    yield from _look_at_permissions(locations)
    yield _look_at_room(locations.state)
    yield _look_at_scratch(locations.scratch)


def _look_at_permissions(locations: Locations) -> Iterator[Finding]:
    check, state = "permissions", locations.state
    if not state.exists():
        parent = _existing(state)
        if os.access(parent, os.W_OK | os.X_OK):
            yield ok(check, f"{state} does not exist yet; the first command makes it.")
        else:
            yield problem(
                check,
                f"{state} does not exist, and you may not make it in {parent}.",
                "Choose another with --state or MEDIAPLANE_STATE, or make it and own it.",
            )
        return
    folders = [state, *(state / name for name in _FOLDERS if (state / name).exists())]
    closed = [folder for folder in folders if not os.access(folder, os.R_OK | os.W_OK | os.X_OK)]
    for folder in closed:
        yield problem(
            check,
            f"You may not write to {folder}.",
            "Run mediaplane as its owner, or give it to who runs mediaplane (chown, chmod u+rwx);"
            " if its disk is mounted read-only, find out why.",
        )
    if stat.S_IMODE(state.stat().st_mode) & _OTHERS:
        yield warning(
            check,
            f"Others can look into {state}, which names the files of the libraries.",
            f"Close it: chmod 700 {state}",
        )
    elif not closed:
        yield ok(check, f"{state} is yours to write to, and nobody else's to read.")


def _look_at_room(state: Path) -> Finding:
    check, folder = "disk", _existing(state)
    room = os.statvfs(folder)
    free_bytes = room.f_bavail * room.f_frsize
    told = f"{free_bytes / (1 << 30):.1f} GiB are free for {state}"
    advice = "Free some space, move the state directory, or run: mediaplane cache sweep"
    if free_bytes < _TOO_LITTLE_BYTES or (room.f_files and not room.f_favail):
        return problem(check, f"The disk of {state} is as good as full ({told}).", advice)
    if free_bytes < _LITTLE_BYTES:
        return warning(check, f"{told}.", advice)
    return ok(check, f"{told}.")


def _look_at_scratch(scratch: Path) -> Finding:
    check = "leftovers"
    try:
        dead = [folder for folder in scratch.iterdir() if _is_dead(folder)]
    except OSError:
        dead = []  # there is none, or it is not ours: that is told elsewhere
    if not dead:
        return ok(check, "No worker has left files of unfinished work behind.")
    size_bytes = sum(file.lstat().st_size for folder in dead for file in folder.rglob("*"))
    return warning(
        check,
        f"{len(dead)} workers that were killed have left {size_bytes} bytes in {scratch}.",
        "The next data plane that starts removes them: mediaplane data-plane",
    )


def _is_dead(folder: Path) -> bool:
    """Tell whether nobody holds a worker's folder any more."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        descriptor = os.open(life_of(folder), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())
