"""Planes that other machines reach, as processes, and commands that reach them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mediaplane.locations import Locations
from mediaplane.planes import is_serving
from tests.support.certificates import Authority
from tests.support.commands import Commands
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS, eventually


@contextmanager
def control_plane(commands: Commands) -> Iterator[None]:
    process = commands.start("control-plane")
    locations = Locations.from_environment(commands.environment)
    try:
        eventually(lambda: is_serving(locations.local_control_address))
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    tmp_path.chmod(0o755)
    return Authority(tmp_path / "ca")


def test_a_first_token_is_made_on_the_machine_and_serves_from_elsewhere(
    tmp_path: Path, authority: Authority
) -> None:
    certificate, key = authority.issue("server")
    key.chmod(0o644)  # the plane of a test runs as somebody else
    port = free_port()
    here = Commands(tmp_path / "state")
    here.run("db", "upgrade")
    here.environment |= {
        "MEDIAPLANE_CONTROL_ADDRESS": f"0.0.0.0:{port}",
        "MEDIAPLANE_TLS_CERT": str(certificate),
        "MEDIAPLANE_TLS_KEY": str(key),
    }
    elsewhere = Commands(tmp_path / "elsewhere")
    elsewhere.environment |= {
        "MEDIAPLANE_SERVER": f"localhost:{port}",
        "MEDIAPLANE_TLS_CA": str(authority.certificate),
    }
    with control_plane(here):
        refused = elsewhere.run("library", "list", code=1)
        assert "MEDIAPLANE_TOKEN" in refused.stderr
        token = here.run("token", "create", "laptop", "--role", "operator").stdout.strip()
        elsewhere.environment["MEDIAPLANE_TOKEN"] = token
        assert elsewhere.json("library", "list") == {"libraries": []}
        told = elsewhere.run("token", "list", code=1)
        assert "needs the role admin" in told.stderr
        del elsewhere.environment["MEDIAPLANE_TLS_CA"]
        unknown = elsewhere.run("library", "list", code=1)
        assert "MEDIAPLANE_TLS_CA" in unknown.stderr
        entries = json.loads(here.run("audit", "list", "--json").stdout)["entries"]
    assert [entry["method"] for entry in entries] == ["TokenService/CreateToken"]


def test_a_plane_that_others_could_reach_without_tls_does_not_start(tmp_path: Path) -> None:
    commands = Commands(tmp_path / "state")
    commands.run("db", "upgrade")
    for plane in ("control", "data"):
        commands.environment[f"MEDIAPLANE_{plane.upper()}_ADDRESS"] = f"0.0.0.0:{free_port()}"
        refused = commands.run(f"{plane}-plane", code=2)
        assert "Refusing to listen" in refused.stderr
        assert "MEDIAPLANE_TLS_CERT" in refused.stderr
