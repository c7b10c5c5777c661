"""Pages of files, and their end."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, text

from control_plane.store.sql import of_tenant, prepared
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import GROUPABLE, GROUPABLE_OF_TENANT
from mediaplane.protocol.statements import among, id_list
from mediaplane.protocol.tables import libraries, library_files


def page(
    conn: Connection,
    library_id: str,
    *,
    limit: int,
    after_path: bytes,
    rel_path: bytes,
    only_errors: bool,
    include_missing: bool,
) -> list[Row]:
    """Return the files of a library by path."""
    file = library_files.c
    query = (
        select(library_files)
        .where(file.library_id == library_id, file.rel_path > after_path)
        .order_by(file.rel_path)
        .limit(limit)
    )
    if rel_path:
        query = query.where(file.rel_path == rel_path)
    if only_errors:
        query = query.where(file.error_code.is_not(None))
    if not include_missing:
        query = query.where(~file.is_missing)
    return list(conn.execute(query).mappings())


def is_known(conn: Connection, tenant_id: str | None, library_id: str, file_id: int) -> bool:
    """Tell whether a file was ever found in a library, which is not in the trash."""
    query = (
        select(library_files.c.id)
        .join(libraries, libraries.c.slug == library_files.c.library_id)
        .where(
            library_files.c.id == file_id,
            library_files.c.library_id == library_id,
            libraries.c.deleted_at.is_(None),
            *of_tenant(libraries, tenant_id),
        )
    )
    return conn.execute(query).first() is not None


def group_files_page(
    conn: Connection,
    tenant_id: str | None,
    algorithm: str,
    content_hash: bytes,
    *,
    limit: int,
    after_id: int,
) -> list[Row]:
    """Return the copies in one group by id; without a tenant, those of all."""
    file = library_files.c
    groupable = (
        text(GROUPABLE)
        if tenant_id is None
        else text(GROUPABLE_OF_TENANT).bindparams(tenant=tenant_id)
    )
    query = (
        select(library_files)
        .where(
            groupable,
            file.hash_algorithm == algorithm,
            file.content_hash == content_hash,
            file.id > after_id,
        )
        .order_by(file.id)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def forget(conn: Connection, ids: Sequence[int]) -> None:
    """Delete files to which nothing refers."""
    dialect = conn.dialect.name
    statement = f"DELETE FROM library_files WHERE {among('id', 'ids', dialect)}"
    conn.execute(prepared(conn, statement), {"ids": id_list(ids, dialect)})
