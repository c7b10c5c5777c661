"""Copies an SQLite database while it is in use, and puts such a copy in the place of another."""

import fcntl
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from mediaplane.errors import UnusableDatabase
from mediaplane.protocol import revision
from mediaplane.protocol.engines import checked_url

# SQLite's lock bytes: every open connection to a database with a log keeps one of them locked.
_FIRST_LOCK_BYTE, _LOCK_BYTES = 0x40000000, 512
_BUSY_SECONDS = 30.0
_BESIDE = ("-journal", "-wal", "-shm")
# Ends the name of a folder in which a copy is being made.
_PARTIAL = ".mediaplane-partial"
# The file in it that is locked for as long as its process lives.
_LIFE = "life"
# Of these the copy is to blame, since the original is only read.
_WRITE_ERRORS = {
    f"SQLITE_IOERR_{what}"
    for what in ("WRITE", "FSYNC", "DIR_FSYNC", "TRUNCATE", "DELETE", "CLOSE", "SHMSIZE")
}
_ADVICE = {
    "backup": "pg_dump --format=custom --file=FILE URL",
    "restore": "pg_restore --clean --if-exists --no-owner --dbname=URL FILE",
}


class Copy(NamedTuple):
    """A database file that was made, whole and checked."""

    path: Path
    revision: str
    size_bytes: int


class Restored(NamedTuple):
    """A database that was replaced, and where the one before it lies now, if there was one."""

    revision: str
    kept: Path | None


def back_up(url: str, target: Path, *, is_replacing: bool = False) -> Copy:
    """Write a copy of the database as it is at one moment, whole or not at all."""
    path = _sqlite_file(url, "backup")
    if not path.exists():
        raise UnusableDatabase(f"There is no database at {path} to back up.")
    if target.resolve() in {Path(f"{path.resolve()}{ending}") for ending in ("", *_BESIDE)}:
        # Whoever has it open would go on with a file that no longer has a name.
        raise UnusableDatabase(f"{target} is the database itself; choose another name.")
    if not is_replacing and os.path.lexists(target):
        raise UnusableDatabase(f"{target} exists already; choose another name, or use --force.")
    with _partial_file(target) as partial:
        # Not read-only: the last one to close a database clears up its log, if it may write.
        _copy(path, partial, "rw")
        found = _check(partial, str(path))
        _sync(partial)
        size_bytes = partial.stat().st_size
        _publish(partial, target, is_replacing=is_replacing)
    return Copy(target, found, size_bytes)


def restore(url: str, source: Path) -> Restored:
    """Put a copy of a backup in the place of the database, which is kept beside it."""
    path = _sqlite_file(url, "restore")
    if not source.is_file():
        raise UnusableDatabase(f"There is no backup at {source}.")
    _refuse_used(path)
    with _partial_file(path) as partial:
        _copy(source, partial, "ro")
        found = _check(partial, str(source))
        _check_known(found, source)
        _sync(partial)
        # Copying took its time: somebody may have begun to use the database.
        _refuse_used(path)
        kept = _keep(path, partial) if path.exists() else None
        os.replace(partial, path)
        _sync(path.parent)
    return Restored(found, kept)


def _sqlite_file(url: str, what: str) -> Path:
    checked = checked_url(url)
    if checked.get_backend_name() != "sqlite":
        raise UnusableDatabase(
            f"The database is PostgreSQL, which has tools for this: {_ADVICE[what]}"
            " (see docs/OPERATIONS.md)."
        )
    return Path(str(checked.database))


@contextmanager
def _partial_file(target: Path) -> Iterator[Path]:
    """Make a file near its target that nobody takes for the target, and leave none behind."""
    _sweep(target.parent)
    with (
        tempfile.TemporaryDirectory(_PARTIAL, ".", target.parent) as folder,
        open(Path(folder, "new-life"), "wb") as life,
    ):
        # Not the file itself: on NFS, SQLite's locks and this one would be in each other's way.
        with suppress(OSError):  # where there are no locks, nobody will think it dead
            fcntl.flock(life, fcntl.LOCK_EX)
            os.rename(life.name, Path(folder, _LIFE))
        partial = Path(folder, target.name)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield partial


def _sweep(folder: Path) -> None:
    """Remove what commands that were killed have left behind."""
    for life in folder.glob(f".*{_PARTIAL}/{_LIFE}"):
        with suppress(OSError), life.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free once its process has ended
            shutil.rmtree(life.parent, ignore_errors=True)


def _copy(source: Path, target: Path, mode: str) -> None:
    try:
        with closing(_connect(source, mode)) as original, closing(_connect(target, "rw")) as copy:
            # A copy waits for ever for a database that is locked, and a read only for so long.
            original.execute("BEGIN")
            original.execute("SELECT 1 FROM sqlite_master").fetchone()
            copy.execute("PRAGMA synchronous = OFF")  # synced once, when it is whole
            # In one step, from one snapshot: in several, each write of others begins it anew.
            original.backup(copy)
            # One plain file, which can be read where nothing can be written.
            copy.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        reason = _reason(error, source, target.parent.parent)
        raise UnusableDatabase(f"{reason} Nothing was changed.") from None


def _reason(error: sqlite3.Error, source: Path, folder: Path) -> str:
    """Return what kept a database from being copied into a folder, and what to do about it."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return f"The disk of {folder} is full; free some space, or choose another."
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return f"{source} is damaged or no SQLite database ({error}); use another copy."
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"Another process keeps {source} locked ({error}); try again when it has ended."
    if name in _WRITE_ERRORS:
        return f"{folder} could not be written to ({error}, {name}); look after its disk."
    if name.startswith("SQLITE_IOERR"):
        return f"{source} could not be read ({error}, {name}); look after its disk."
    return f"{source} could not be copied to {folder} ({error}, {name})."


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(uri, _BUSY_SECONDS, isolation_level=None, uri=True)


def _check(copy: Path, origin: str) -> str:
    """Return the revision of a copy that is whole and one of mediaplane's databases."""
    try:
        with closing(_connect(copy, "ro")) as raw:
            said = raw.execute("PRAGMA integrity_check(1)").fetchone()[0]
            dangling = raw.execute("PRAGMA foreign_key_check").fetchone()
            tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master")}
            query = "SELECT version_num FROM alembic_version"
            recorded = raw.execute(query).fetchone() if "alembic_version" in tables else None
    except sqlite3.DatabaseError as error:
        raise UnusableDatabase(f"{origin} is damaged ({error}); use another copy.") from None
    if said != "ok" or dangling:
        damage = f"row {dangling[1]} of {dangling[0]} refers to nothing" if dangling else said
        raise UnusableDatabase(f"{origin} is damaged ({damage}); use another copy.")
    if recorded is None:
        raise UnusableDatabase(f"{origin} is not a database of mediaplane.")
    return str(recorded[0])


def _check_known(found: str, source: Path) -> None:
    known = {path.stem for path in revision.VERSIONS.glob("[0-9]*.py")}
    if found not in known:
        raise UnusableDatabase(
            f"{source} has the schema {found}, which this version does not know (its newest is"
            f" {revision.head()}); restore it with the version of mediaplane that made it."
        )


def _refuse_used(path: Path) -> None:
    if not path.exists():
        return
    # By SQLite's own locks, which also show a database that is too damaged to be opened.
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_BYTES, _FIRST_LOCK_BYTE)
        except OSError:
            raise UnusableDatabase(
                f"The database {path} is in use; stop both planes and whoever else has it open,"
                " and restore again."
            ) from None


def _keep(path: Path, successor: Path) -> Path:
    """Give the database a second name, and its place's owner and permissions to its successor."""
    with suppress(sqlite3.DatabaseError), closing(_connect(path, "rw")) as raw:
        # What stands in the log belongs to the database that is kept, and to no other.
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    kept = path.with_name(f"{path.name}.before-restore-{moment}")
    os.link(path, kept)
    for ending in _BESIDE:  # left by a database that is too damaged for SQLite to clear up
        with suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{kept}{ending}")
    owner = path.stat()
    shutil.copymode(path, successor)
    os.chown(successor, owner.st_uid, owner.st_gid)
    return kept


def _publish(partial: Path, target: Path, *, is_replacing: bool) -> None:
    if is_replacing:
        os.replace(partial, target)
    else:
        try:
            os.link(partial, target)  # unlike a rename it never replaces what came meanwhile
        except FileExistsError:
            raise UnusableDatabase(f"{target} exists by now; choose another name.") from None
        except OSError:
            # Disks formatted for other systems have no links; whoever else wrote there is rare.
            if os.path.lexists(target):
                raise UnusableDatabase(f"{target} exists by now; choose another name.") from None
            os.rename(partial, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
