"""Pictures and videos as the database knows them, and thumbnails of them."""

from typing import Any

from sqlalchemy import insert, update

from mediaplane.protocol import tables
from mediaplane.v1 import thumbnail_service_pb2 as pb
from tests.support.control import ControlPlane
from tests.support.files import add_files, add_library


def add_pictures(control: ControlPlane, slug: str, count: int, **columns: Any) -> list[str]:
    """Add a library of pictures and return the names of its files."""
    with control.database.control.write() as conn:
        add_library(conn, slug)
        row = {"media_type": "image"} | columns
        return [f"libraries/{slug}/files/{one}" for one in add_files(conn, slug, [row] * count)]


def requested(control: ControlPlane, file: str, **wanted: Any) -> pb.Thumbnail:
    request = pb.RequestThumbnailRequest(file=file, **wanted)
    return control.client.thumbnail_service.RequestThumbnail(request)


def requested_all(control: ControlPlane, *wanted: dict[str, Any]) -> list[pb.Thumbnail]:
    requests = [pb.RequestThumbnailRequest(**one) for one in wanted]
    answer = control.client.thumbnail_service.BatchRequestThumbnails(
        pb.BatchRequestThumbnailsRequest(requests=requests)
    )
    return list(answer.thumbnails)


def set_columns(control: ControlPlane, table: str, row_id: int, **columns: Any) -> None:
    """Put a row into a state that only other parts of the system lead to."""
    chosen = tables.metadata.tables[table]
    with control.database.control.write() as conn:
        conn.execute(update(chosen).where(chosen.c.id == row_id).values(**columns))


def add_row(control: ControlPlane, table: str, **columns: Any) -> int:
    with control.database.control.write() as conn:
        added = conn.execute(insert(tables.metadata.tables[table]).values(**columns))
    assert added.inserted_primary_key
    return int(added.inserted_primary_key[0])


def number(name: str) -> int:
    """The id at the end of a name."""
    return int(name.rpartition("/")[2])
