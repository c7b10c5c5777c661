"""The folders of the libraries: whether they are there, readable, and still the same."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select

from mediaplane.doctor.finding import Finding, ok, problem, warning
from mediaplane.paths import display
from mediaplane.protocol.tables import libraries, library_files
from mediaplane.v1.data_plane_service_pb2 import ProbeRootResponse

_State = ProbeRootResponse.State


def known(conn: Connection) -> Sequence[Any]:
    """Return the libraries that are not in the trash, with what their root was when last seen."""
    columns = libraries.c
    has_files = (
        select(library_files.c.id)
        .where(library_files.c.library_id == columns.slug, ~library_files.c.is_missing)
        .exists()
    )
    query = (
        select(columns.slug, columns.absolute_path, columns.root_device, columns.root_inode,
               columns.tenant_id, columns.hash_algorithm, has_files.label("has_files"))
        .where(columns.deleted_at.is_(None))
        .order_by(columns.slug)
    )  # fmt: skip
    return conn.execute(query).all()


def look(rows: Sequence[Any], seen: Sequence[ProbeRootResponse]) -> Iterator[Finding]:
    """Compare what libraries were with what a data plane sees in their places now."""
    if not rows:
        yield ok("libraries", "There are no libraries yet.")
    for row, found in zip(rows, seen, strict=True):
        yield _judge(row, found)
    for tenant_id in sorted({row.tenant_id for row in rows}):
        yield from _compare([row for row in rows if row.tenant_id == tenant_id])


def _compare(rows: Sequence[Any]) -> Iterator[Finding]:
    """Warn of libraries of one tenant whose hashes have nothing to do with each other."""
    slugs: dict[str, list[str]] = {}
    for row in rows:
        slugs.setdefault(row.hash_algorithm, []).append(row.slug)
    if len(slugs) > 1:
        parts = [f"{', '.join(some)} by {name}" for name, some in sorted(slugs.items())]
        yield warning(
            "libraries",
            f"Hashed by different algorithms: {'; '.join(parts)}. Copies are found only among"
            " libraries with the same one.",
            "Choose one for all: mediaplane library set SLUG --hash-algorithm blake3",
        )


def _judge(row: Any, found: ProbeRootResponse) -> Finding:
    check, where = "libraries", f"{row.slug} ({display(bytes(row.absolute_path))})"
    if found.state not in (_State.STATE_OK, _State.STATE_EMPTY):
        return problem(
            check,
            f"{where}: {found.message}",
            "Mount its disk, or give it back to who runs the data plane. Until then scans fail"
            " and nothing is forgotten.",
        )
    if row.root_inode is not None and found.inode != row.root_inode:
        return problem(
            check,
            f"{where}: another folder lies where the library was.",
            f"Mount the right disk; if it is right, run: mediaplane scan {row.slug}"
            " --accept-new-root",
        )
    if found.state == _State.STATE_EMPTY:
        tell = problem if row.has_files else warning
        return tell(check, f"{where}: {found.message}", "Mount its disk, or put files into it.")
    if row.root_device is not None and found.filesystem_id != row.root_device:
        return warning(
            check,
            f"{where}: it lies on another file system than at its last scan, as after a remount.",
            f"If its files are those of the library, all is well: mediaplane scan {row.slug}",
        )
    kind = f" on {found.filesystem_type}" if found.filesystem_type else ""
    return ok(check, f"{where} is there{kind}, and can be read.")
