"""The data plane's SQL: reads tasks and writes what came of them, through the gate."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import select, text, update

from data_plane.executor import (
    Fail,
    Found,
    LeaseLost,
    ProbeTask,
    ScanCounts,
    ScanSettings,
    ScanTask,
    Seen,
    Unseen,
)
from data_plane.media_types import media_type
from mediaplane.protocol import gate, kinds, packs, wal
from mediaplane.protocol import write_paths as paths
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.database import changed as note_change
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import libraries, scan_sessions
from mediaplane.protocol.values import JobKind, ScanChange, ScanSessionStatus

_KNOWN_PAGE = 10_000
_STAGING = (paths.STAGE_BATCH, paths.STAGE_ENTRIES, paths.REPORT_SCAN_ERRORS)
_BATCH = ("session_id", "files")
_ENTRY = (*Seen._fields, "media_type", "change", "session_id")
# Bare strings: SQLite's driver takes long to find out that a member of an enumeration is one.
_SEEN, _MISSING = ScanChange.SEEN.value, ScanChange.MISSING.value
_SCAN_SETTINGS = [setting.name for setting in fields(ScanSettings)]

_KNOWN = text(
    "SELECT rel_path, size_bytes, mtime_ns, device, inode FROM library_files"
    " WHERE library_id = :library AND rel_path > :after AND NOT is_missing"
    " ORDER BY rel_path LIMIT :limit"
)


def scan_task(database: Database, job: Row) -> ScanTask:
    """Open a scan session for a claimed job."""
    payload = kinds.decode(JobKind.SCAN, job["payload"])
    with database.read() as conn:
        library = conn.execute(
            select(
                libraries.c.absolute_path,
                libraries.c.root_device,
                *(libraries.c[name] for name in _SCAN_SETTINGS),
            ).where(libraries.c.slug == payload.library, libraries.c.deleted_at.is_(None))
        ).first()
    if library is None:
        raise Fail("library_gone", f"The library {payload.library!r} does not exist any more.")
    with database.write(paths.OPEN_SCAN) as conn:
        session = {
            "library_id": payload.library,
            "job_id": job["id"],
            "lease_epoch": job["lease_epoch"],
        }
        gate.add(conn, paths.OPEN_SCAN, [session])
        session_id = conn.execute(
            select(scan_sessions.c.id).where(
                scan_sessions.c.job_id == job["id"],
                scan_sessions.c.lease_epoch == job["lease_epoch"],
            )
        ).scalar_one()
    root, device, *settings = library
    report = Report(database, session_id, payload.library)
    known_device = None if payload.accept_new_root else device
    return ScanTask(payload.library, bytes(root), report, ScanSettings(*settings), known_device)


class Report:
    """A running scan session in the database (see `executor.ScanReport`)."""

    def __init__(self, database: Database, session_id: int, library: str) -> None:
        self._database = database
        self._session_id = session_id
        self._library = library

    def known(self) -> Iterator[tuple[Any, ...]]:
        """Yield the files that were there at the last scan, by path, as the fields of `Seen`."""
        after = b""
        while True:
            # Page by page: a read held open for the whole scan would let the WAL grow.
            with self._database.read() as conn:
                bound = {"library": self._library, "after": after, "limit": _KNOWN_PAGE}
                # As the driver reads them: of a million files hardly one is looked at further.
                rows = conn.execute(_KNOWN, bound).cursor.fetchall()
            yield from rows
            if len(rows) < _KNOWN_PAGE:
                return
            after = rows[-1][0]

    def add(
        self,
        new: Sequence[Found],
        changed: Sequence[Seen],
        missing: Sequence[Seen],
        unseen: Sequence[Unseen],
    ) -> None:
        """Stage what differs, for the control plane to take over."""
        session = self._session_id
        batches = [(session, _pack(new))] if new else []
        entries: list[tuple[Any, ...]] = [
            (*file, media_type(file.rel_path), _SEEN, session) for file in changed
        ]
        entries += [(*file, None, _MISSING, session) for file in missing]
        errors = [
            {
                "session_id": session,
                "rel_path": name.rel_path,
                "error_code": name.code,
                "error_message": name.message,
            }
            for name in unseen
        ]
        if batches or entries or errors:
            with self._database.write(*_STAGING) as conn:
                gate.add_many(conn, paths.STAGE_BATCH, _BATCH, batches)
                gate.add_many(conn, paths.STAGE_ENTRIES, _ENTRY, entries)
                gate.add(conn, paths.REPORT_SCAN_ERRORS, errors)
                note_change(conn, Topic.SCANS)

    def is_held_back(self) -> bool:
        """Tell whether what was added has to be taken over first, by a database that can."""
        return wal.is_congested(self._database)

    def began(self, root: tuple[int, int]) -> None:
        """Report which root is being walked."""
        self._write(root_device=root[0], root_inode=root[1])

    def walked(self, counts: ScanCounts) -> None:
        """Report that the whole library was seen."""
        self._write(**asdict(counts), walked_at=now_ms())

    def _write(self, **columns: Any) -> None:
        session = scan_sessions.c
        is_open = (session.id == self._session_id) & (session.status == ScanSessionStatus.RUNNING)
        with self._database.write(paths.REPORT_SCAN) as conn:
            written = conn.execute(update(scan_sessions).where(is_open).values(**columns))
            note_change(conn, Topic.SCANS)
        if written.rowcount == 0:
            # Judged before the walk was over, as a root that is another one; or not ours any more.
            refusal = self.verdict()
            raise Fail(*refusal) if isinstance(refusal, tuple) else LeaseLost

    def verdict(self) -> tuple[str, str] | bool:
        """Return whether the control plane has taken the report over, or why it refused."""
        with self._database.read() as conn:
            row = conn.execute(
                select(scan_sessions).where(scan_sessions.c.id == self._session_id)
            ).one()
        if row.status == ScanSessionStatus.FAILED:
            return str(row.error_code), str(row.error_message)
        return bool(row.status == ScanSessionStatus.SUCCEEDED)


def _pack(files: Sequence[Found]) -> bytes:
    paths, *numbers = zip(*files, strict=True)
    return packs.pack(paths, map(media_type, paths), *numbers)


def probe_task(_database: Database, row: Row) -> ProbeTask:
    """Read what a probe, or an item of one, is to do."""
    payload = kinds.decode(JobKind.PROBE, row["payload"])
    return ProbeTask(payload.seconds, payload.scratch_bytes, row["total_items"] or 0)
