"""A server of a version before tenants ignores them; whoever asked for one is told so."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner, Result

from mediaplane.cli.app import app
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1 import token_service_pb2 as tokens_v1
from mediaplane.v1.library_service_pb2_grpc import (
    LibraryServiceServicer,
    add_LibraryServiceServicer_to_server,
)
from mediaplane.v1.token_service_pb2_grpc import (
    TokenServiceServicer,
    add_TokenServiceServicer_to_server,
)


class Libraries(LibraryServiceServicer):
    """Knows no tenants, so it neither reads nor writes the field."""

    def HashLibrary(self, request: libraries_v1.HashLibraryRequest, context: Any) -> jobs_v1.Job:
        return jobs_v1.Job(name="jobs/7", kind="JOB_KIND_HASH")

    def CreateLibrary(
        self, request: libraries_v1.CreateLibraryRequest, context: Any
    ) -> libraries_v1.Library:
        return libraries_v1.Library(name="libraries/scans", display_name="Scans")


class Tokens(TokenServiceServicer):
    """Lets whoever it lets in see everything."""

    def CreateToken(
        self, request: tokens_v1.CreateTokenRequest, context: Any
    ) -> tokens_v1.CreateTokenResponse:
        made = tokens_v1.Token(name="tokens/3", role=request.token.role)
        return tokens_v1.CreateTokenResponse(token=made, secret="mp_of-every-tenant")


@pytest.fixture
def older(tmp_path: Path) -> Iterator[str]:
    """The address of such a server."""
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        add_LibraryServiceServicer_to_server(Libraries(), server)  # type: ignore[abstract]
        add_TokenServiceServicer_to_server(Tokens(), server)  # type: ignore[abstract]
        address = f"unix:{tmp_path}/s"
        server.add_insecure_port(address)
        server.start()
        yield address
        server.stop(0).wait()


def run(address: str, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--server", address])


@pytest.mark.parametrize(
    ("words", "undo"),
    [
        (["hash", "--no-wait"], "mediaplane job cancel 7"),
        (["library", "add", "Scans", "/srv/scans"], "mediaplane library remove scans"),
        (["token", "create", "console", "--role", "viewer"], "mediaplane token revoke 3"),
    ],
)
def test_a_tenant_that_was_ignored_is_told_with_how_to_undo_it(
    older: str, words: list[str], undo: str
) -> None:
    told = run(older, *words, "--tenant", "north")
    assert told.exit_code == 1
    assert "ignored the tenant north" in told.stderr
    assert undo in told.stderr
    assert "mp_" not in told.output
    assert run(older, *words).exit_code == 0, "without a tenant there is nothing to ignore"
