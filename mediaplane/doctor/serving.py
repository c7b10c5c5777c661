"""The addresses of the planes: who answers there, of which version, and with which clock."""

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc

from mediaplane import __version__
from mediaplane.client import Client, failure
from mediaplane.doctor.clock import compare
from mediaplane.doctor.finding import Finding, ok, problem
from mediaplane.locations import Locations
from mediaplane.planes import is_connectable
from mediaplane.settings import variable
from mediaplane.v1.data_plane_service_pb2 import GetStatusRequest
from mediaplane.v1.maintenance_service_pb2 import GetControlPlaneStatusRequest

_ANSWER_SECONDS = 5.0
_METRICS = variable("control_metrics_address")


class Answers:
    """The planes that answer, for checks that ask them more."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.has_control = False
        self.has_data = False


def look(locations: Locations, answers: Answers, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Ask at both addresses; note who answers."""
    client = answers.client

    def ask_control() -> Any:
        request = GetControlPlaneStatusRequest()
        return client.maintenance_service.GetControlPlaneStatus(request, timeout=_ANSWER_SECONDS)

    def ask_data() -> Any:
        return client.data_plane_service.GetStatus(GetStatusRequest(), timeout=_ANSWER_SECONDS)

    for name, address, ask in (
        ("control plane", locations.local_control_address, ask_control),
        ("data plane", locations.local_data_address, ask_data),
    ):
        findings = list(_look_at(name, address, ask))
        yield from findings
        is_answered = len(findings) > 1
        if name == "control plane":
            answers.has_control = is_answered
        else:
            answers.has_data = is_answered
        yield from _look_at_socket(address)
    metrics_address = environ.get(_METRICS, "")
    if metrics_address and not answers.has_control and _is_taken(metrics_address):
        yield problem(
            "addresses",
            f"Something listens at {metrics_address} while no control plane runs.",
            f"End it, or choose another {_METRICS}.",
        )


def _look_at(name: str, address: str, ask: Callable[[], Any]) -> Iterator[Finding]:
    check = "planes"
    if not _is_taken(address):
        yield ok(check, f"No {name} runs at {address}; commands start one for themselves.")
        return
    asked_at = time.time()
    try:
        status = ask()
    except grpc.RpcError as error:
        yield problem(
            "addresses",
            f"Something listens at {address} and does not answer as a {name}:"
            f" {failure(error, address)}",
            "End it, or choose another address with MEDIAPLANE_CONTROL_ADDRESS or"
            " MEDIAPLANE_DATA_ADDRESS; a plane that hangs or is older than this, restart.",
        )
        return
    answered_at = time.time()
    restart = "Restart it with this version; docs/UPGRADING.md tells the order."
    if not status.HasField("current_time"):
        # The number alone does not show it: code between two releases has that of the last.
        yield problem(check, f"The {name} at {address} is older than this version.", restart)
        return
    if status.version == __version__:
        yield ok(check, f"The {name} at {address} runs version {status.version}.")
    else:
        yield problem(
            check,
            f"The {name} at {address} runs version {status.version}, and this is {__version__}.",
            restart,
        )
    yield compare(name, status.current_time.ToNanoseconds() / 1e9, asked_at, answered_at)


def _look_at_socket(address: str) -> Iterator[Finding]:
    path = Path(unquote(address.removeprefix("unix:")))
    if not address.startswith("unix:") or not path.exists():
        return
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & 0o077:
        yield problem(
            "permissions",
            f"Others may use the socket {path} (mode {mode:o}), and whatever it gives access to.",
            f"Close it: chmod 600 {path}",
        )
    else:
        yield ok("permissions", f"The socket {path} is its owner's alone.")


def _is_taken(address: str) -> bool:
    """Tell whether anything accepts connections at an address."""
    if address.startswith("unix:"):
        return is_connectable(address)
    host, _, port = address.removeprefix("dns:///").rpartition(":")
    try:
        place = (host.removeprefix("[").removesuffix("]"), int(port))
        socket.create_connection(place, timeout=_ANSWER_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
