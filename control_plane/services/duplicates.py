"""DuplicateService: groups of files with the same content."""

import grpc

from control_plane.services import names, paging, wire
from control_plane.store import files
from mediaplane.errors import InvalidArgument
from mediaplane.protocol.database import Database
from mediaplane.v1 import duplicate_service_pb2 as pb
from mediaplane.v1.duplicate_service_pb2_grpc import DuplicateServiceServicer

_CURSOR = {
    "file_count": int,
    "total_size_bytes": int,
    "hash_algorithm": str,
    "content_hash_hex": str,
}


class DuplicateService(DuplicateServiceServicer):
    """The duplicates of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ListDuplicateGroups(
        self, request: pb.ListDuplicateGroupsRequest, context: grpc.ServicerContext
    ) -> pb.ListDuplicateGroupsResponse:
        limit = paging.size(request.page_size)
        after = _position(request.page_token) if request.page_token else None
        with self._database.read() as conn:
            rows = files.group_page(conn, limit=limit + 1, after=after)
        page, tail = paging.split(rows, limit)
        token = ""
        if tail is not None:
            token = paging.encode(
                {
                    "file_count": tail["file_count"],
                    "total_size_bytes": tail["total_size_bytes"],
                    "hash_algorithm": tail["hash_algorithm"],
                    "content_hash_hex": tail["content_hash"].hex(),
                }
            )
        return pb.ListDuplicateGroupsResponse(
            groups=[wire.duplicate_group(row) for row in page], next_page_token=token
        )

    def ListDuplicateFiles(
        self, request: pb.ListDuplicateFilesRequest, context: grpc.ServicerContext
    ) -> pb.ListDuplicateFilesResponse:
        limit = paging.size(request.page_size)
        algorithm, content_hash = names.group(request.parent)
        after = paging.decode_id(request.page_token)
        with self._database.read() as conn:
            rows = files.group_files_page(
                conn, algorithm, content_hash, limit=limit + 1, after_id=after
            )
        page, tail = paging.split_paths(rows, limit)
        return pb.ListDuplicateFilesResponse(
            files=[wire.file(row) for row in page],
            next_page_token=str(tail["id"]) if tail else "",
        )


def _position(token: str) -> tuple[int, int, str, bytes]:
    cursor = paging.decode(token, _CURSOR)
    try:
        algorithm, content_hash = names.group_parts(
            f"{cursor['hash_algorithm']}:{cursor['content_hash_hex']}"
        )
    except InvalidArgument:
        raise paging.refused() from None
    return cursor["file_count"], cursor["total_size_bytes"], algorithm, content_hash
