"""The real services of the data plane on a unix socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from data_plane.leases import Leases
from data_plane.roots import Roots
from data_plane.server import services
from data_plane.settings import DataSettings
from mediaplane.client import open_channel
from mediaplane.protocol.database import Database
from mediaplane.serving import build_server
from mediaplane.v1 import content_service_pb2 as content_v1
from mediaplane.v1.content_service_pb2_grpc import ContentServiceStub
from mediaplane.v1.data_plane_service_pb2_grpc import DataPlaneServiceStub


@dataclass(frozen=True)
class DataPlane:
    """A data plane that answers, without its slots: it does no work."""

    address: str
    leases: Leases
    content: ContentServiceStub
    status: DataPlaneServiceStub

    def read(self, name: str, offset: int = 0, length: int = 0) -> bytes:
        request = content_v1.ReadOriginalRequest(name=name, offset=offset, length=length)
        return b"".join(message.data for message in self.content.ReadOriginal(request))


@contextmanager
def serving_data(
    database: Database, directory: Path, *, roots: str = "", streams: int = 8
) -> Iterator[DataPlane]:
    settings = DataSettings(roots=roots, data_calls=4, data_streams=streams)
    leases = Leases("worker-1", Event())
    address = f"unix:{directory / 'data.sock'}"
    server, _ = build_server(
        address,
        services(database, leases, Roots(roots), settings),
        calls=settings.data_calls,
        streams=settings.data_streams,
    )
    server.start()
    try:
        with open_channel(address) as channel:
            content, status = ContentServiceStub(channel), DataPlaneServiceStub(channel)
            yield DataPlane(address, leases, content, status)
    finally:
        server.stop(5).wait()
