"""ThumbnailService: thumbnails in any size, on request."""

from collections.abc import Sequence
from functools import cache

import grpc

from control_plane.policy import thumbnails as rules
from control_plane.policy.recollection import Recollection
from control_plane.services import media_wire, names, paging, wire
from control_plane.store import files, thumbnails
from mediaplane.errors import InvalidArgument, NotFound
from mediaplane.identity import caller
from mediaplane.protocol import audit
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import ThumbnailFormat
from mediaplane.v1 import thumbnail_service_pb2 as pb
from mediaplane.v1.thumbnail_service_pb2_grpc import ThumbnailServiceServicer

# Pictures that were asked for lately: 3 MB of them, and at most twice that.
_REMEMBERED = 20_000


class ThumbnailService(ThumbnailServiceServicer):
    """The thumbnails that were asked for."""

    def __init__(self, database: Database, capacity: int) -> None:
        self._database = database
        self._capacity = capacity
        self._lately: Recollection[thumbnails.Picture] = Recollection(_REMEMBERED)

    def RequestThumbnail(
        self, request: pb.RequestThumbnailRequest, context: grpc.ServicerContext
    ) -> pb.Thumbnail:
        wanted = _wanted(request)
        (row,) = self._request([wanted])
        return media_wire.thumbnail(row, wanted.library)

    def BatchRequestThumbnails(
        self, request: pb.BatchRequestThumbnailsRequest, context: grpc.ServicerContext
    ) -> pb.BatchRequestThumbnailsResponse:
        if not 1 <= len(request.requests) <= rules.MAX_BATCH:
            raise InvalidArgument(
                f"A batch has 1 to {rules.MAX_BATCH} requests, not {len(request.requests)}."
            )
        wanted = [_wanted(one) for one in request.requests]
        libraries = {one.library for one in wanted}
        audit.concerns(f"libraries/{libraries.pop()}" if len(libraries) == 1 else "libraries/-")
        rows = self._request(wanted)
        answer = pb.BatchRequestThumbnailsResponse()
        for one, row in zip(wanted, rows, strict=True):
            media_wire.fill_thumbnail(answer.thumbnails.add(), row, one.library)
        return answer

    def GetThumbnail(
        self, request: pb.GetThumbnailRequest, context: grpc.ServicerContext
    ) -> pb.Thumbnail:
        thumbnail_id = names.thumbnail_id(request.name)
        with self._database.read() as conn:
            row = rules.get(conn, caller().tenant_id, thumbnail_id)
        return media_wire.thumbnail(row, row["library_id"])

    def ListThumbnails(
        self, request: pb.ListThumbnailsRequest, context: grpc.ServicerContext
    ) -> pb.ListThumbnailsResponse:
        if bool(request.file) == bool(request.group_key):
            raise InvalidArgument("Name either a file or a group_key whose thumbnails to list.")
        limit = paging.size(request.page_size)
        query = paging.fingerprint("thumbnails", request.file, request.group_key)
        after = paging.decode_row(request.page_token, query)
        rules.check_group_key(request.group_key)
        slug, file_id = names.file(request.file) if request.file else (None, None)
        tenant_id = caller().tenant_id
        with self._database.read() as conn:
            if slug and not files.is_known(conn, tenant_id, slug, file_id or 0):
                raise NotFound(f"There is no file {request.file}.")
            rows = thumbnails.page(
                conn,
                tenant_id,
                file_id=file_id,
                group_key=request.group_key,
                limit=limit + 1,
                after_id=after,
            )
        page, tail = paging.split(rows, limit)
        return pb.ListThumbnailsResponse(
            thumbnails=[media_wire.thumbnail(row, row["library_id"]) for row in page],
            next_page_token=paging.encode_row(tail["id"], query) if tail else "",
        )

    def ScheduleCleanup(
        self, request: pb.ScheduleCleanupRequest, context: grpc.ServicerContext
    ) -> pb.ThumbnailCleanup:
        delay_ms = request.delay.ToMilliseconds()
        with self._database.write() as conn:
            row = rules.schedule_cleanup(conn, caller().tenant_id, request.group_key, delay_ms)
            message = media_wire.cleanup(row)
            audit.concerns(message.name)
            return message

    def GetCleanup(
        self, request: pb.GetCleanupRequest, context: grpc.ServicerContext
    ) -> pb.ThumbnailCleanup:
        cleanup_id = names.cleanup_id(request.name)
        with self._database.read() as conn:
            return media_wire.cleanup(rules.get_cleanup(conn, caller().tenant_id, cleanup_id))

    def _request(self, wanted: Sequence[rules.Wanted]) -> list[Row]:
        return rules.request(
            self._database, caller().tenant_id, wanted, self._capacity, self._lately
        )


def _wanted(request: pb.RequestThumbnailRequest) -> rules.Wanted:
    library, file_id = names.file(request.file)
    return rules.Wanted(
        library,
        file_id,
        request.size_px or rules.DEFAULT_SIZE_PX,
        _format(request.format),
        request.group_key,
    )


@cache
def _format(number: int) -> str:
    return wire.from_enum(pb.Thumbnail.Format, number) or ThumbnailFormat.JPEG.value
