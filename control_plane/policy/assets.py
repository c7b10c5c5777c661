"""Decides which pictures and videos are processed again."""

from sqlalchemy import Connection

from control_plane.store import assets
from mediaplane.errors import FailedPrecondition, NotFound
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import PROCESSED, AssetStatus

# Most assets moved in one transaction, so that others get their turn.
_CHUNK = 5000


def get(conn: Connection, tenant_id: str | None, library: str, asset_id: int) -> Row:
    """Return an asset."""
    found = assets.get(conn, tenant_id, library, asset_id)
    if found is None:
        raise NotFound(
            f"There is no asset libraries/{library}/assets/{asset_id};"
            f" `mediaplane asset list {library}` shows them."
        )
    return found


def frames(conn: Connection, asset: Row, *, limit: int, from_ms: int) -> list[Row]:
    """Return frames of a video by time; none that show it as it was before."""
    if asset["status"] not in PROCESSED:
        return []
    return assets.frames_page(conn, asset["id"], limit=limit, from_ms=from_ms)


def retry(conn: Connection, tenant_id: str | None, library: str, asset_id: int) -> Row:
    """Have an asset processed again from the start, one that is done as well."""
    asset = get(conn, tenant_id, library, asset_id)
    if not assets.retry(conn, asset_id):
        raise FailedPrecondition(
            f"Asset {asset_id} is {asset['status']}: it is processed anyway; retry it once it is"
            " done, should that be needed."
        )
    return get(conn, tenant_id, library, asset_id)


def retry_all(database: Database, library: str) -> int:
    """Have every failed or poisoned asset of a library processed again; return how many."""
    retried = 0
    for status in (AssetStatus.FAILED, AssetStatus.POISONED):
        # By id: one that fails again in the meantime must not be met again.
        after_id, is_more = 0, True
        while is_more:
            with database.write() as conn:
                moved = assets.retry_some(conn, library, status, limit=_CHUNK, after_id=after_id)
            retried += len(moved)
            after_id, is_more = max(moved, default=0), len(moved) == _CHUNK
    return retried
