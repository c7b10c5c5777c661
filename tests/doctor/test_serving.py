"""The doctor looks at the addresses of the planes: who is there, and which version it has."""

import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from mediaplane import __version__
from mediaplane.client import Client
from mediaplane.doctor import serving
from mediaplane.doctor.finding import Finding, Level
from mediaplane.locations import Locations
from mediaplane.planes import is_serving
from mediaplane.v1.data_plane_service_pb2 import (
    DataPlaneStatus,
    GetStatusRequest,
    ProbeRootRequest,
    ProbeRootResponse,
)
from mediaplane.v1.data_plane_service_pb2_grpc import (
    DataPlaneServiceServicer,
    add_DataPlaneServiceServicer_to_server,
)
from tests.doctor.reading import levels, only
from tests.support.control import ControlPlane
from tests.support.control import control as control
from tests.support.data import serving_data
from tests.support.databases import Copies
from tests.support.waiting import eventually

# A control plane as an earlier version would be.
_EARLIER = """
import mediaplane
mediaplane.__version__ = "0.0.1"
import runpy
runpy.run_module("control_plane", run_name="__main__")
"""


def look(locations: Locations, **environ: str) -> list[Finding]:
    with Client(locations.control_address, locations.data_address) as client:
        return list(serving.look(locations, serving.Answers(client), environ))


@pytest.fixture(scope="module")
def earlier(
    sqlite_template: Copies, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Locations]:
    """A control plane of another version, whose clock is an hour slow."""
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("libfaketime is missing: make tools installs it")
    state = tmp_path_factory.mktemp("earlier")
    with sqlite_template() as url:
        chosen = {"MEDIAPLANE_STATE": str(state), "MEDIAPLANE_DATABASE_URL": url}
        locations = Locations.from_environment(chosen)
        locations.prepare()
        false = {"LD_PRELOAD": str(libraries[0]), "FAKETIME": "-1h",
                 "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
        plane = subprocess.Popen(
            [sys.executable, "-c", _EARLIER], env=os.environ | locations.environment() | false
        )
        try:
            eventually(lambda: is_serving(locations.control_address))
            yield locations
        finally:
            plane.terminate()
            plane.wait()


def test_addresses_where_nothing_runs_are_well(locations: Locations) -> None:
    assert levels(look(locations), "planes") == ["ok", "ok"]


def test_planes_that_run_apart_are_well(
    control: ControlPlane, locations: Locations, tmp_path: Path
) -> None:
    with serving_data(control.database, tmp_path) as data:
        apart = replace(locations, control_address=control.address, data_address=data.address)
        findings = look(apart)
    assert levels(findings, "planes") == ["ok", "ok"]
    assert levels(findings, "clock") == ["ok", "ok"]
    assert levels(findings, "permissions") == ["ok", "ok"]  # of the sockets


def test_a_plane_of_another_version_is_a_problem(earlier: Locations) -> None:
    assert "0.0.1" in only(look(earlier), "planes", Level.PROBLEM).message


def test_a_plane_whose_clock_differs_is_warned_of(earlier: Locations) -> None:
    assert "s behind this machine's" in only(look(earlier), "clock", Level.WARNING).message


class OlderDataPlane(DataPlaneServiceServicer):
    """A data plane of a time when planes did not tell the time."""

    def GetStatus(
        self, request: GetStatusRequest, context: grpc.ServicerContext
    ) -> DataPlaneStatus:
        return DataPlaneStatus(version=__version__)

    def ProbeRoot(
        self, request: ProbeRootRequest, context: grpc.ServicerContext
    ) -> ProbeRootResponse:
        raise AssertionError("an older plane is asked nothing more")


def test_a_plane_that_tells_no_time_is_older_and_its_clock_is_not_judged(
    locations: Locations,
) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    add_DataPlaneServiceServicer_to_server(OlderDataPlane(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        findings = look(replace(locations, data_address=f"127.0.0.1:{port}"))
    finally:
        server.stop(None).wait()
    assert "is older than this version" in only(findings, "planes", Level.PROBLEM).message
    assert levels(findings, "clock") == []


def test_a_socket_that_others_may_use_is_a_problem(
    control: ControlPlane, locations: Locations
) -> None:
    path = Path(control.address.removeprefix("unix:"))
    path.chmod(0o666)
    findings = look(replace(locations, control_address=control.address))
    assert f"chmod 600 {path}" in only(findings, "permissions", Level.PROBLEM).advice


class Stranger(socketserver.BaseRequestHandler):
    """Answers as no plane does."""

    def handle(self) -> None:
        self.request.sendall(b"220 mail.example.org ready\r\n")


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of another program's port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_port_that_another_program_has_taken_is_a_problem(
    locations: Locations, stranger: str
) -> None:
    findings = look(replace(locations, data_address=stranger))
    assert stranger in only(findings, "addresses", Level.PROBLEM).message


def test_a_port_for_metrics_that_is_taken_is_a_problem(locations: Locations, stranger: str) -> None:
    findings = look(locations, MEDIAPLANE_CONTROL_METRICS_ADDRESS=stranger)
    assert stranger in only(findings, "addresses", Level.PROBLEM).message


def test_a_plane_that_hangs_is_a_problem(
    locations: Locations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_ANSWER_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes calls and never answers
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        findings = look(replace(locations, control_address=address))
    assert address in only(findings, "addresses", Level.PROBLEM).message
