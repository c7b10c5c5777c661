"""What both gRPC servers have in common: limits, health, reflection and errors."""

import ipaddress
import logging
import os
import socket
import sqlite3
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn
from urllib.parse import unquote

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mediaplane.errors import CallerError, UnusableSettings

log = logging.getLogger(__name__)

ERROR_DOMAIN = "mediaplane"
_MAX_MESSAGE = 4 << 20

Service = tuple[str, Callable[[grpc.Server], None]]  # full name, and what adds it to a server


class ErrorInterceptor(grpc.ServerInterceptor):
    """Turns exceptions into statuses, and keeps everything internal inside."""

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wrap the handler of a call."""
        handler = continuation(details)
        if handler is None:
            return None
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(
                _guarded(handler.unary_unary, details.method),
                handler.request_deserializer,
                handler.response_serializer,
            )
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(
                _guarded_stream(handler.unary_stream, details.method),
                handler.request_deserializer,
                handler.response_serializer,
            )
        return handler


def build_server(
    address: str, services: Sequence[Service], *, calls: int, streams: int
) -> tuple[grpc.Server, health.HealthServicer]:
    """Return a server bound to an address, not started yet."""
    _check_address(address)
    pool = ThreadPoolExecutor(calls + streams, thread_name_prefix="grpc")
    server = grpc.server(
        pool,
        interceptors=[ErrorInterceptor()],
        maximum_concurrent_rpcs=(calls + streams) * 4,
        options=[
            ("grpc.so_reuseport", 0),  # otherwise two servers share a port in silence
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.max_send_message_length", _MAX_MESSAGE),
            ("grpc.max_metadata_size", 16 << 10),
            ("grpc.max_concurrent_streams", calls + streams),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ],
    )
    for _, add in services:
        add(server)
    # The stored health service answers from its own thread, so a full pool still reports health.
    states = health.HealthServicer(
        experimental_non_blocking=True,
        experimental_thread_pool=ThreadPoolExecutor(2, thread_name_prefix="health"),
    )
    health_pb2_grpc.add_HealthServicer_to_server(states, server)
    named = [name for name, _ in services]
    reflection.enable_server_reflection(
        [*named, health.SERVICE_NAME, reflection.SERVICE_NAME], server
    )
    _bind(server, address)
    for name in ("", *named):
        states.set(name, health_pb2.HealthCheckResponse.SERVING)
    return server, states


def _check_address(address: str) -> None:
    if address.startswith(("unix:", "unix-abstract:")) or _is_loopback(address):
        return
    raise UnusableSettings(
        f"Refusing to listen on {address}: beyond this machine, calls need encryption and"
        " authentication, which are not set up. Use a unix: socket or a loopback address."
    )


def _is_loopback(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return False
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host == "localhost"


def _bind(server: grpc.Server, address: str) -> None:
    if address.startswith("unix:"):
        _remove_stale(unquote(address.removeprefix("unix:").removeprefix("//")))
    mask = os.umask(0o177)  # a socket is its owner's alone; a port does not care
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError:
        bound = 0
    finally:
        os.umask(mask)
    if not bound:
        raise UnusableSettings(
            f"Cannot listen on {address}; is another server there already, or is the path too long?"
        )


def _remove_stale(path: str) -> None:
    """Remove the socket of a process that is gone; refuse when somebody listens on it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            with suppress(FileNotFoundError):
                # An ordinary file refuses connections too, and is not ours to remove.
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    os.unlink(path)
            return
        except OSError:
            return
    raise UnusableSettings(f"Another server listens on {path} already.")


def _guarded(behaviour: Callable[..., Any], method: str) -> Callable[..., Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return behaviour(request, context)
        except Exception as error:  # noqa: BLE001 - the one place where every error ends
            _abort(context, error, method)

    return call


def _guarded_stream(behaviour: Callable[..., Any], method: str) -> Callable[..., Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        try:
            yield from behaviour(request, context)
        except Exception as error:  # noqa: BLE001 - the one place where every error ends
            _abort(context, error, method)

    return call


def _abort(context: grpc.ServicerContext, error: Exception, method: str) -> NoReturn:
    status = _status(error, method)
    context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError("abort_with_status raises")


def _status(error: Exception, method: str) -> status_pb2.Status:
    if isinstance(error, CallerError):
        return _rich(error.code, str(error), error.reason, error.details)
    if _is_passing(error):
        log.error("%s: the database does not answer", method, exc_info=error)
        return _rich(
            "UNAVAILABLE",
            "The database does not answer right now; try again.",
            "DATABASE_UNAVAILABLE",
            {},
        )
    reference = uuid.uuid4().hex[:12]
    log.error("%s failed, reference %s", method, reference, exc_info=error)
    return _rich(
        "INTERNAL",
        f"Something went wrong inside the server; its log has the details under {reference}.",
        "INTERNAL",
        {"reference": reference},
    )


def _is_passing(error: Exception) -> bool:
    """Tell whether the database could not answer, as opposed to a question that is wrong."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeoutError)
    # SQLite says OperationalError of wrong SQL too, with the plainest of its codes.
    code = getattr(error.orig, "sqlite_errorcode", None)
    is_operational = isinstance(error, OperationalError) and code != sqlite3.SQLITE_ERROR
    return is_operational or error.connection_invalidated


def _rich(code: str, message: str, reason: str, details: dict[str, str]) -> status_pb2.Status:
    info = error_details_pb2.ErrorInfo(reason=reason, domain=ERROR_DOMAIN, metadata=details)
    packed = any_pb2.Any()
    packed.Pack(info)
    return status_pb2.Status(code=code_pb2.Code.Value(code), message=message, details=[packed])
