"""Decides what a library may be called, where it may lie and what may change about it."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from control_plane.store import libraries
from mediaplane.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from mediaplane.paths import display, slugify
from mediaplane.protocol.database import lock
from mediaplane.protocol.driver import Row

_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAX_NAME = 200
# Each is a tile of one JPEG, whose sides have 65,500 pixels at most.
MAX_SAMPLES = 1000
_MAX_GLOBS = 200  # patterns in a list
_MAX_GLOB = 500  # characters in a pattern


def create(
    conn: Connection, tenant_id: str, *, slug: str, name: str, root: bytes, **settings: Any
) -> Row:
    """Add a library of a tenant."""
    _check_name(name)
    _check_settings(settings)
    chosen = slug or slugify(name)
    if not _SLUG.fullmatch(chosen):
        raise InvalidArgument(
            f"{display(chosen.encode())!r} is no library id: use 1 to 63 of a-z, 0-9 and -, with a"
            " letter or digit at both ends."
        )
    path = _checked_root(root)
    check_root_is_free(conn, tenant_id, path)
    library = libraries.add(
        conn, slug=chosen, tenant_id=tenant_id, name=name, absolute_path=path, **settings
    )
    if library is None:
        raise _taken(conn, tenant_id, chosen)
    return library


def get(conn: Connection, tenant_id: str | None, slug: str) -> Row:
    """Return a library that is not in the trash."""
    library = libraries.get(conn, tenant_id, slug)
    if library is None:
        raise unknown(slug)
    if library["deleted_at"] is not None:
        raise NotFound(
            f"Library {slug!r} is in the trash; bring it back with"
            f" `mediaplane library restore {slug}`."
        )
    return library


def unknown(slug: str) -> NotFound:
    """Return what to say of a library that does not exist."""
    return NotFound(
        f"There is no library {display(slug.encode())!r}; `mediaplane library list` shows them."
    )


def check_root_is_free(conn: Connection, tenant_id: str, path: bytes) -> None:
    """Refuse a root that a library has already, and keep others from taking it.

    Of another tenant's libraries, what they hold and what holds them is taken too.
    """
    lock(conn, "library_roots")  # no index says that a root belongs to one library
    for library in libraries.roots(conn):
        root = library["absolute_path"]
        if library["tenant_id"] != tenant_id and (
            _is_beneath(path, root) or _is_beneath(root, path)
        ):
            raise FailedPrecondition(
                f"{display(path)} lies in a library of another tenant, or holds one; choose"
                " another folder."
            )
        if root == path:
            raise AlreadyExists(
                f"{display(path)} is the root of library {library['slug']!r} already.",
                library=f"libraries/{library['slug']}",
            )


def _is_beneath(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


def change(conn: Connection, tenant_id: str | None, slug: str, columns: Mapping[str, Any]) -> Row:
    """Change settings of a library."""
    get(conn, tenant_id, slug)
    if "name" in columns:
        _check_name(columns["name"])
    _check_settings(columns)
    return libraries.change(conn, slug, columns)


def _taken(conn: Connection, tenant_id: str, slug: str) -> Exception:
    existing = libraries.get(conn, tenant_id, slug)
    if existing is None:  # it is another tenant's, of which nothing more is said
        return AlreadyExists(
            f"The library id {slug!r} is not available; choose another name or id."
        )
    if existing["deleted_at"] is not None:
        return FailedPrecondition(
            f"A library {slug!r} lies in the trash; restore it"
            f" (mediaplane library restore {slug}) or choose another name"
            " (mediaplane library add --slug OTHER NAME PATH).",
            library=f"libraries/{slug}",
        )
    return AlreadyExists(
        f"A library {slug!r} exists already; choose another name or id.",
        library=f"libraries/{slug}",
    )


def _checked_root(root: bytes) -> bytes:
    if not root.startswith(b"/") or b"\0" in root:
        raise InvalidArgument(
            f"The root of a library must be an absolute path, not {display(root)!r}."
        )
    # POSIX leaves two slashes at the front alone; to Linux they are one.
    path = os.path.normpath(b"/" + root.lstrip(b"/"))
    if path == b"/":
        raise InvalidArgument("The whole file system cannot be a library; name a folder in it.")
    return path


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidArgument(f"The name of a library has 1 to {_MAX_NAME} printable characters.")


def _check_settings(columns: Mapping[str, Any]) -> None:
    limit = columns.get("sampling_limit", 1)
    if not 1 <= limit <= MAX_SAMPLES:
        raise InvalidArgument(f"sampling_limit is {limit}; it must be 1 to {MAX_SAMPLES}.")
    min_size_bytes = columns.get("min_size_bytes", 0)
    if min_size_bytes < 0:
        raise InvalidArgument(f"min_size_bytes is {min_size_bytes}; it must be 0 or more.")
    for field in ("include_globs", "exclude_globs"):
        _check_globs(field, columns.get(field, ()))


def _check_globs(field: str, globs: Sequence[str]) -> None:
    if len(globs) > _MAX_GLOBS:
        raise InvalidArgument(f"{field} has {len(globs)} patterns; give at most {_MAX_GLOBS}.")
    for glob in globs:
        if not 1 <= len(glob) <= _MAX_GLOB or "\0" in glob:
            raise InvalidArgument(
                f"{display(glob[:100].encode())!r} cannot be in {field}; a pattern has 1 to"
                f" {_MAX_GLOB} characters, none of them NUL."
            )
