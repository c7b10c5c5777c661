"""The real services of the data plane on a unix socket, and the files that they may read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_plane.leases import Leases
from data_plane.roots import Roots
from data_plane.server import services
from data_plane.settings import DataSettings
from mediaplane.client import open_channel
from mediaplane.serving import build_server
from mediaplane.tokens import Tokens
from mediaplane.v1 import content_service_pb2 as content_v1
from mediaplane.v1.content_service_pb2_grpc import ContentServiceStub
from mediaplane.v1.data_plane_service_pb2_grpc import DataPlaneServiceStub
from tests.support.control import Refusal, refusal
from tests.support.databases import Databases
from tests.support.files import add_files, add_library

LIBRARY = "pictures"


@dataclass(frozen=True)
class DataPlane:
    """A data plane that answers, without its slots: it does no work."""

    database: Databases
    directory: Path
    address: str
    leases: Leases
    content: ContentServiceStub
    status: DataPlaneServiceStub

    def record(self, root: Path, *paths: bytes, slug: str = LIBRARY, **columns: Any) -> list[str]:
        """Make files known as a scan would, and return their names."""
        rows = []
        for path in paths:
            info = os.lstat(os.path.join(bytes(root), path))
            size, mtime = info.st_size, info.st_mtime_ns
            rows.append({"rel_path": path, "size_bytes": size, "mtime_ns": mtime} | columns)
        with self.database.control.write() as conn:
            ids = add_files(conn, add_library(conn, slug, absolute_path=bytes(root)), rows)
        return [f"libraries/{slug}/files/{number}" for number in ids]

    def read(
        self, name: str, offset: int = 0, length: int = 0
    ) -> list[content_v1.ReadOriginalResponse]:
        return list(self.content.ReadOriginal(asked(name, offset, length)))

    def refused(self, name: str, offset: int = 0, length: int = 0) -> Refusal:
        """Ask for what must be refused; the refusal must not say where anything lies."""
        told = refusal(self.content.ReadOriginal, asked(name, offset, length))
        for secret in (str(self.directory), self.directory.name, "secret", ".jpg"):
            assert secret not in repr(told)
        return told


def asked(name: str, offset: int = 0, length: int = 0) -> content_v1.ReadOriginalRequest:
    return content_v1.ReadOriginalRequest(name=name, offset=offset, length=length)


def joined(messages: list[content_v1.ReadOriginalResponse]) -> bytes:
    return b"".join(message.data for message in messages)


def first(stream: Iterator[content_v1.ReadOriginalResponse]) -> content_v1.ReadOriginalResponse:
    """Read one message of a stream, which stays open."""
    return next(stream)


@contextmanager
def serving_data(database: Databases, directory: Path, **settings: Any) -> Iterator[DataPlane]:
    chosen = DataSettings(**settings)
    leases = Leases("worker-1")
    address = f"unix:{directory / 'data.sock'}"
    server, _ = build_server(
        address,
        services(database.data, leases, Roots(chosen.roots), directory, chosen),
        calls=chosen.data_calls,
        streams=chosen.data_streams,
        tokens=Tokens(database.data),
    )
    server.start()
    try:
        with open_channel(address) as channel:
            content, status = ContentServiceStub(channel), DataPlaneServiceStub(channel)
            yield DataPlane(database, directory, address, leases, content, status)
    finally:
        server.stop(5).wait()
