"""Pictures and videos, the frames of videos, and how far all of them are processed."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from control_plane.store.sql import of_tenant, owned, prepared
from mediaplane.protocol import gate
from mediaplane.protocol.database import Topic, changed
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import ASSETS
from mediaplane.protocol.statements import among, id_list
from mediaplane.protocol.tables import assets, libraries, library_files, video_frames
from mediaplane.protocol.values import AssetStatus

_CHOSEN = {
    "sqlite": "SELECT value FROM json_each(:slugs)",
    "postgresql": "SELECT json_array_elements_text(CAST(:slugs AS JSON))",
}
_ACTIVE = "l.is_active AND l.deleted_at IS NULL"
_IMAGES, _VIDEOS = (f"status = 'pending' AND a.type = '{kind}'" for kind in ("image", "video"))
# What a worker met who looked for an asset while its file was elsewhere already: nothing, or
# another file. Of what has moved it says nothing.
IS_OF_OLD_NAME = "error_code IN ('not_found', 'changed')"
# A value and no EXISTS, which PostgreSQL would join: it may read all files to find a few.
_IS_THERE = (
    "(SELECT NOT f.is_missing FROM library_files f"
    " WHERE f.library_id = a.library_id AND f.rel_path = a.rel_path)"
)
_FAILED, _POISONED = (f"status = '{status}' AND {_IS_THERE}" for status in ("failed", "poisoned"))


def get(conn: Connection, tenant_id: str | None, library_id: str, asset_id: int) -> Row | None:
    """Return an asset of a library that is not in the trash."""
    query = (
        select(assets)
        .join(libraries, libraries.c.slug == assets.c.library_id)
        .where(
            assets.c.id == asset_id,
            assets.c.library_id == library_id,
            libraries.c.deleted_at.is_(None),
            *of_tenant(libraries, tenant_id),
        )
    )
    return conn.execute(query).mappings().first()


def page(conn: Connection, library_id: str, *, limit: int, after_path: bytes) -> list[Row]:
    """Return the assets of a library by path; those whose file is missing are left out."""
    asset = assets.c
    query = (
        select(assets)
        .join(
            library_files,
            (library_files.c.library_id == asset.library_id)
            & (library_files.c.rel_path == asset.rel_path)
            & ~library_files.c.is_missing,
        )
        .where(asset.library_id == library_id, asset.rel_path > after_path)
        .order_by(asset.rel_path)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def state_page(
    conn: Connection, library_id: str, status: AssetStatus, *, limit: int, after_id: int
) -> list[Row]:
    """Return the assets of a library in a state that has an index, by id; none that is gone."""
    query = prepared(conn, f"SELECT a.* FROM assets a WHERE {_in_state(status)}")
    bound = {"library": library_id, "after": after_id, "limit": limit}
    return list(conn.execute(query, bound).mappings())


def frames_page(conn: Connection, asset_id: int, *, limit: int, from_ms: int) -> list[Row]:
    """Return the frames of a video by time."""
    frame = video_frames.c
    query = (
        select(frame.timestamp_ms, frame.is_keyframe)
        .where(frame.asset_id == asset_id, frame.timestamp_ms >= from_ms)
        .order_by(frame.timestamp_ms)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def retry(conn: Connection, asset_id: int) -> bool:
    """Have an asset processed again; False when it waits for that, or a worker is at it."""
    changed(conn, Topic.WORK)
    # As if its file had changed: what was made of it before may be lost.
    return gate.take(conn, ASSETS, "rediscover", asset_id)


def retry_some(
    conn: Connection, library_id: str, status: AssetStatus, *, limit: int, after_id: int
) -> list[int]:
    """Have the next assets of a library that failed, or are poisoned, processed again."""
    these = f"id IN (SELECT a.id FROM assets a WHERE {_in_state(status)})"
    bound = {"library": library_id, "after": after_id, "limit": limit}
    changed(conn, Topic.WORK)
    return [row["id"] for row in gate.take_all(conn, ASSETS, "retry", these, bound)]


def of_files(conn: Connection, file_ids: Sequence[int]) -> dict[int, Any]:
    """Return id and version of the assets of files, by the ids of the files."""
    dialect = conn.dialect.name
    query = prepared(
        conn,
        "SELECT f.id AS file_id, a.id, a.version FROM library_files f JOIN assets a"
        " ON a.library_id = f.library_id AND a.rel_path = f.rel_path"
        f" WHERE {among('f.id', 'ids', dialect)}",
    )
    return {row.file_id: row for row in conn.execute(query, {"ids": id_list(file_ids, dialect)})}


def forget(conn: Connection, ids: Sequence[int]) -> None:
    """Delete assets, those at work too: whoever is at one has lost it, and the rest is swept."""
    dialect = conn.dialect.name
    for table, column in (("video_frames", "asset_id"), ("assets", "id")):
        statement = f"DELETE FROM {table} WHERE {among(column, 'ids', dialect)}"
        conn.execute(prepared(conn, statement), {"ids": id_list(ids, dialect)})


def look_again(conn: Connection, ids: Sequence[int]) -> None:
    """Have those assets processed that were not found under the names they had before."""
    dialect = conn.dialect.name
    these = f"{among('id', 'ids', dialect)} AND {IS_OF_OLD_NAME}"
    gate.take_all(conn, ASSETS, "rediscover", these, {"ids": id_list(ids, dialect)})


def resting(
    conn: Connection, tenant_id: str | None, slugs: Sequence[str] | None, *, with_failed: bool
) -> dict[str, int]:
    """Return how many assets wait or failed, in active libraries of a tenant or in some of them.

    What failed is left out once its file is gone; what waits will be looked for.
    """
    failed = f"{_total(_FAILED)} + {_total(_POISONED)}" if with_failed else "0"
    chosen = "" if slugs is None else f" AND l.slug IN ({_CHOSEN[conn.dialect.name]})"
    query = prepared(
        conn,
        f"SELECT {_total(_IMAGES)} AS waiting_images, {_total(_VIDEOS)} AS waiting_videos,"
        f" {failed} AS failed_assets"
        f" FROM libraries l WHERE {_ACTIVE}{owned('l', tenant_id)}{chosen}",
    )
    bound = {"tenant": tenant_id, "slugs": json.dumps(slugs)}
    # PostgreSQL sums to a decimal.
    return {name: int(total) for name, total in conn.execute(query, bound).mappings().one().items()}


def running(conn: Connection, tenant_id: str | None, slugs: Sequence[str] | None) -> int:
    """Return how many assets workers read, in active libraries of a tenant or in some of them."""
    query = prepared(conn, f"SELECT l.slug FROM libraries l WHERE {_ACTIVE}{owned('l', tenant_id)}")
    active = set(conn.scalars(query, {"tenant": tenant_id}))
    found: Counter[str] = Counter()
    for status in (AssetStatus.EXTRACTING, AssetStatus.ANALYZING):
        # They are few, and counted here: by library, SQLite would read all assets instead.
        query = prepared(conn, f"SELECT library_id FROM assets WHERE status = '{status}'")
        found.update(conn.scalars(query))
    return sum(found[slug] for slug in (active if slugs is None else active.intersection(slugs)))


def _in_state(status: AssetStatus) -> str:
    # The status is written out: a partial index does not match a parameter.
    return (
        f"a.status = '{status}' AND a.library_id = :library AND a.id > :after AND {_IS_THERE}"
        " ORDER BY a.id LIMIT :limit"
    )


def _total(condition: str) -> str:
    return (
        "coalesce(sum((SELECT count(*) FROM assets a"
        f" WHERE a.{condition} AND a.library_id = l.slug)), 0)"
    )
