"""A server that answers with what it was sent: what a call costs before anything is done for it.

It is built as the planes build theirs, and runs in a process of its own, as they do.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from control_plane.settings import ControlSettings
from mediaplane import serving
from mediaplane.client import open_channel
from mediaplane.v1.duplicate_service_pb2 import ListDuplicateGroupsResponse
from mediaplane.v1.job_service_pb2 import ListJobsResponse
from mediaplane.v1.thumbnail_service_pb2 import Thumbnail

SERVICE = "bench.Echo"
# A method for each, so that the server reads and writes the message as it is.
MESSAGES = (ListDuplicateGroupsResponse, ListJobsResponse, Thumbnail)

# Makes, of a message, a call that sends it there and back.
Echoes = Callable[[Any], Callable[[], Any]]


@contextmanager
def running_echo() -> Iterator[Echoes]:
    """Run the server, and yield what makes calls of it."""
    with tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as directory:
        address = f"unix:{Path(directory, 'echo.sock')}"
        command = [sys.executable, "-m", "bench.echo", address]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE),  # which ends with its input
            open_channel(address) as channel,
        ):
            grpc.channel_ready_future(channel).result(timeout=30)
            yield partial(_echo, channel)


def _echo(channel: grpc.Channel, message: Any) -> Callable[[], Any]:
    kind = type(message)
    path = f"/{SERVICE}/{kind.__name__}"
    return partial(channel.unary_unary(path, kind.SerializeToString, kind.FromString), message)


def serve(address: str) -> None:
    """Answer until the input ends."""
    methods = {
        kind.__name__: grpc.unary_unary_rpc_method_handler(
            lambda request, _context: request, kind.FromString, kind.SerializeToString
        )
        for kind in MESSAGES
    }
    handlers = (grpc.method_handlers_generic_handler(SERVICE, methods),)
    settings = ControlSettings()
    server, _ = serving.build_server(
        address, [], calls=settings.control_calls, streams=settings.control_watchers
    )
    # Beside the services, each of whose methods needs a rule: an echo is no part of the contract.
    server.add_generic_rpc_handlers(handlers)
    server.start()
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    serve(sys.argv[1])
