"""A scan as the control plane meets it: a claimed job, its session, and what it reported."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from control_plane.policy import discovery
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import (
    assets,
    libraries,
    library_files,
    scan_batches,
    scan_entries,
    scan_sessions,
)
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import (
    Group,
    add_files,
    add_library,
    content,
    digest,
    summarise_all,
    summarised_groups,
)
from tests.support.rows import Rows

LIBRARY = "photos"
ROOT_INODE = 1
PAIR = [Group(2, 20, "blake3", digest(1).hex())]


@dataclass(frozen=True)
class Scan:
    """One scan that a worker has claimed, by hand: nothing is absorbed but what a test absorbs."""

    database: Databases
    job: Row
    session_id: int

    def stage(self, change: str, *entries: dict[str, Any]) -> None:
        worker.stage(self.database.data, self.session_id, change, entries)

    def stage_new(self, *entries: dict[str, Any]) -> None:
        worker.stage_new(self.database.data, self.session_id, entries)

    def walked(self, **columns: Any) -> None:
        worker.walked(self.database.data, self.session_id, **columns)

    def absorbed(self) -> int:
        """Take over all there is; return in how many turns."""
        turns = 0
        while discovery.absorb(self.database.control):
            turns += 1
        return turns

    @property
    def session(self) -> Row:
        with self.database.control.read() as conn:
            query = select(scan_sessions).where(scan_sessions.c.id == self.session_id)
            return conn.execute(query).mappings().one()

    @property
    def verdict(self) -> tuple[str, str | None]:
        return self.session["status"], self.session["error_code"]

    @property
    def entries_left(self) -> int:
        with self.database.control.read() as conn:
            query = select(scan_entries.c.id).where(scan_entries.c.session_id == self.session_id)
            return len(conn.execute(query).all())

    @property
    def batches_left(self) -> int:
        with self.database.control.read() as conn:
            query = select(scan_batches.c.id).where(scan_batches.c.session_id == self.session_id)
            return len(conn.execute(query).all())


def known_library(database: Databases, *files: dict[str, Any], **columns: Any) -> None:
    """A library that was scanned before and found to hold these files."""
    with database.control.write() as conn:
        add_library(conn, LIBRARY, **({"root_device": 1, "root_inode": ROOT_INODE} | columns))
        add_files(conn, LIBRARY, files)


def known_pair(database: Databases, **columns: Any) -> None:
    """A library that was found to hold two copies of one content, `a` and `b`."""
    hashed = content(1) | {"size_bytes": 10, "mtime_ns": 5, "device": 1}
    known_library(
        database,
        hashed | {"rel_path": b"a", "inode": 11} | columns,
        hashed | {"rel_path": b"b", "inode": 12},
    )
    with database.control.write() as conn:
        summarise_all(conn)


def seen(path: bytes, inode: int, **columns: Any) -> dict[str, Any]:
    """An entry of the report; by default of a file like those two."""
    return {"rel_path": path, "size_bytes": 10, "mtime_ns": 5, "inode": inode} | columns


def start_scan(database: Databases, **payload: Any) -> Scan:
    """Claim a new scan of the library and open its session."""
    with database.control.write() as conn:
        Rows(conn).add(
            "jobs", kind="scan", library_id=LIBRARY, payload={"library": LIBRARY} | payload
        )
    job = worker.claim(database.data)
    return Scan(database, job, worker.open_scan(database.data, job))


def files_of(database: Databases, library: str = LIBRARY) -> dict[bytes, Row]:
    with database.control.read() as conn:
        query = select(library_files).where(library_files.c.library_id == library)
        return {bytes(row["rel_path"]): row for row in conn.execute(query).mappings()}


def assets_of(database: Databases) -> dict[bytes, Row]:
    with database.control.read() as conn:
        query = select(assets).where(assets.c.library_id == LIBRARY)
        return {bytes(row["rel_path"]): row for row in conn.execute(query).mappings()}


def library_of(database: Databases) -> Row:
    with database.control.read() as conn:
        query = select(libraries).where(libraries.c.slug == LIBRARY)
        return conn.execute(query).mappings().one()


def groups_of(database: Databases) -> list[Group]:
    """The summary of duplicate groups."""
    with database.control.read() as conn:
        return summarised_groups(conn)
