"""The SQL of the sweep: which rows that own derivatives exist, and where media lies."""

from collections.abc import Collection

from sqlalchemy import select

from data_plane.cache import Owner, SweepTask
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import assets, libraries, thumbnails

_TABLES = {Owner.ASSETS: assets, Owner.THUMBNAILS: thumbnails}


def sweep_task(database: Database, _job: object) -> SweepTask:
    """Read where every library lies."""
    with database.read() as conn:
        roots = [bytes(root) for root in conn.scalars(select(libraries.c.absolute_path))]

    def known(owner: Owner, row_ids: Collection[int]) -> set[int]:
        row_id = _TABLES[owner].c.id
        with database.read() as conn:
            return set(conn.scalars(select(row_id).where(row_id.in_(row_ids))))

    return SweepTask(roots, known)
