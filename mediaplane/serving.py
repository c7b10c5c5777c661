"""What both gRPC servers have in common: addresses, limits, health and reflection."""

import os
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import unquote

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from mediaplane import authorization, transport
from mediaplane.calls import CallMeter
from mediaplane.errors import UnusableSettings
from mediaplane.interceptors import Guard, NoteRefusal
from mediaplane.places import Places, spare_places
from mediaplane.tokens import Tokens
from mediaplane.transport import TransportSettings

_MAX_MESSAGE = 4 << 20
# Many more than there are places: a client that meets this limit waits without being told why.
_MAX_CONNECTION_CALLS = 2048
# How long a call may keep a thread waiting for its request when others wait for a thread.
_PATIENCE_SECONDS = 1.0

Service = tuple[str, Callable[[grpc.Server], None]]  # full name, and what adds it to a server


def build_server(
    address: str,
    services: Sequence[Service],
    *,
    calls: int,
    streams: int,
    settings: TransportSettings = TransportSettings(),  # noqa: B008 - frozen
    tokens: Tokens | None = None,
    note_refusal: NoteRefusal | None = None,
    local_address: str | None = None,
    meter: CallMeter | None = None,
) -> tuple[grpc.Server, health.HealthServicer]:
    """Return a server bound to an address, not started yet.

    One that is encrypted is bound to `local_address` as well, for commands on this machine.
    `meter` sees every call first.
    """
    if meter:
        meter.cover(name for name, _ in services)
    credentials = transport.credentials(address, settings)
    threads = calls + streams
    places = Places(threads, threads, _PATIENCE_SECONDS, "grpc")
    spare = spare_places()
    server = grpc.server(
        places,
        # No maximum_concurrent_rpcs: it would refuse health checks too.
        interceptors=[*([meter] if meter else []), Guard(places, spare, tokens, note_refusal)],
        options=[
            ("grpc.so_reuseport", 0),  # otherwise two servers share a port in silence
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.max_send_message_length", _MAX_MESSAGE),
            ("grpc.max_metadata_size", 16 << 10),
            ("grpc.max_concurrent_streams", _MAX_CONNECTION_CALLS),
            # Beyond these gRPC itself drops calls, as if the caller had cancelled them.
            ("grpc.server.max_pending_requests", 16 * _MAX_CONNECTION_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", 32 * _MAX_CONNECTION_CALLS),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ],
    )
    states = _add_services(server, services, spare)
    _bind(server, address, credentials)
    if credentials and local_address:
        _bind(server, local_address, None)
    return server, states


def _add_services(
    server: grpc.Server, services: Sequence[Service], spare: Places
) -> health.HealthServicer:
    named = [name for name, _ in services]
    without_rule = authorization.missing(named)
    if without_rule:
        raise RuntimeError(f"mediaplane/authorization.py has no rule for {without_rule}")
    for _, add in services:
        add(server)
    states = health.HealthServicer(experimental_non_blocking=True, experimental_thread_pool=spare)
    health_pb2_grpc.add_HealthServicer_to_server(states, server)
    reflection.enable_server_reflection(
        [*named, health.SERVICE_NAME, reflection.SERVICE_NAME], server
    )
    for name in ("", *named):
        states.set(name, health_pb2.HealthCheckResponse.SERVING)
    return states


def _bind(server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None) -> None:
    if address.startswith("unix:"):
        _remove_stale(unquote(address.removeprefix("unix:").removeprefix("//")))
    mask = os.umask(0o177)  # a socket is its owner's alone; a port does not care
    try:
        if credentials:
            bound = server.add_secure_port(address, credentials)
        else:
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
