"""ContentService: bytes of files and of what was made of them, through the jail."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from sqlalchemy import String, bindparam, text
from sqlalchemy.engine import Row

from data_plane.file_states import explain, state_of
from data_plane.renditions import Renditions
from data_plane.roots import AnotherRoot, OutsideRoots, Root, Roots, open_root
from mediaplane.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    Overloaded,
)
from mediaplane.identity import caller
from mediaplane.protocol.database import Database
from mediaplane.protocol.versions import version_of
from mediaplane.v1 import content_service_pb2 as pb
from mediaplane.v1.content_service_pb2_grpc import ContentServiceServicer

_BLOCK_BYTES = 256 << 10
_NAME = re.compile(r"libraries/([a-z0-9-]{1,63})/files/([1-9][0-9]{0,17})")
_FILE = text(
    "SELECT f.rel_path, f.size_bytes, f.mtime_ns, f.is_missing, l.absolute_path, l.root_device,"
    " l.root_inode"
    " FROM library_files f JOIN libraries l ON l.slug = f.library_id"
    " WHERE f.id = :id AND f.library_id = :library AND l.deleted_at IS NULL"
    " AND (:tenant IS NULL OR l.tenant_id = :tenant)"
).bindparams(bindparam("tenant", type_=String()))


class ContentService(ContentServiceServicer):
    """Streams what the libraries hold."""

    def __init__(self, database: Database, roots: Roots, state: bytes, max_streams: int) -> None:
        self._renditions = Renditions(database, state)
        self._database = database
        self._roots = roots
        self._streams = threading.BoundedSemaphore(max_streams)

    def ReadOriginal(
        self, request: pb.ReadOriginalRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ReadOriginalResponse]:
        file = self._find(request.name)
        if request.offset < 0 or request.length < 0:
            raise InvalidArgument("offset and length must not be negative.")
        if request.offset > file.size_bytes:
            raise OutOfRange(
                f"The file has {file.size_bytes} bytes; {request.offset} is beyond its end."
            )
        with self._stream_slot():
            descriptor = self._open(file)
            try:
                yield from _stream(descriptor, file, request, context)
            finally:
                os.close(descriptor)

    def ReadThumbnail(
        self, request: pb.ReadThumbnailRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ContentChunk]:
        found = self._renditions.thumbnail(caller().tenant_id, request.name)
        with self._stream_slot():
            yield from self._renditions.stream(found, context.is_active)

    def ReadRendition(
        self, request: pb.ReadRenditionRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ContentChunk]:
        found = self._renditions.of_asset(caller().tenant_id, request.name, request.rendition)
        with self._stream_slot():
            yield from self._renditions.stream(found, context.is_active)

    def ReadFrame(
        self, request: pb.ReadFrameRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ContentChunk]:
        found = self._renditions.frame(caller().tenant_id, request.name)
        with self._stream_slot():
            yield from self._renditions.stream(found, context.is_active)

    @contextmanager
    def _stream_slot(self) -> Iterator[None]:
        if not self._streams.acquire(blocking=False):
            raise Overloaded("Too many files are being read; try again in a while.")
        try:
            yield
        finally:
            self._streams.release()

    def _find(self, name: str) -> Row[Any]:
        found = _NAME.fullmatch(name)
        if found is None:
            raise InvalidArgument("name must be of the form libraries/SLUG/files/123.")
        with self._database.read() as conn:
            tenant_id = caller().tenant_id
            bound = {"id": int(found[2]), "library": found[1], "tenant": tenant_id}
            file = conn.execute(_FILE, bound).first()
        if file is None or file.is_missing:
            raise NotFound("There is no such file; it may have been removed.")
        return file

    def _open(self, file: Row[Any]) -> int:
        try:
            root = Root(bytes(file.absolute_path), file.root_device, file.root_inode)
            with open_root(root, self._roots.open_jail) as jail:
                descriptor = jail.open_file(bytes(file.rel_path))
        except FileNotFoundError:
            raise NotFound("The file is not there any more; scan its library again.") from None
        except AnotherRoot:
            raise FailedPrecondition(
                "Another folder stands where the library was at its last scan. Is its disk mounted?"
                " If so, scan the library again."
            ) from None
        except OutsideRoots as error:
            raise FailedPrecondition(f"The library lies {error.strerror}.") from None
        except OSError as error:
            raise FailedPrecondition(explain(error)[1]) from None
        if not _is_as_scanned(descriptor, file):
            os.close(descriptor)
            raise FailedPrecondition("The file has changed since the scan; scan its library again.")
        return descriptor


def _stream(
    descriptor: int,
    file: Row[Any],
    request: pb.ReadOriginalRequest,
    context: grpc.ServicerContext,
) -> Iterator[pb.ReadOriginalResponse]:
    end = file.size_bytes
    if request.length:
        end = min(end, request.offset + request.length)
    position = request.offset
    version = version_of(file.size_bytes, file.mtime_ns)
    message = pb.ReadOriginalResponse(size_bytes=file.size_bytes, version_id=version)
    if position >= end:
        yield message
    while position < end and context.is_active():
        message.data = os.pread(descriptor, min(_BLOCK_BYTES, end - position), position)
        if not message.data or not _is_as_scanned(descriptor, file):
            raise Aborted("The file changed while it was read; scan its library and try again.")
        position += len(message.data)
        yield message
        message = pb.ReadOriginalResponse()


def _is_as_scanned(descriptor: int, file: Row[Any]) -> bool:
    return state_of(os.fstat(descriptor)) == (file.size_bytes, file.mtime_ns)
