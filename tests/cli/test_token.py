"""Tokens are made, shown once, listed and revoked on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mediaplane.cli.app import app
from mediaplane.credentials import Credentials
from mediaplane.errors import UnusableSettings
from tests.support.control import serving_control
from tests.support.databases import Copies, opened


class Terminal:
    """Types commands for one control plane."""

    def __init__(self, address: str) -> None:
        self.address = address

    def type(self, *words: str, code: int = 0, **environment: str) -> Result:
        result = CliRunner().invoke(app, [*words, "--server", self.address], env=environment)
        assert result.exit_code == code, result.output
        return result


@pytest.fixture
def terminal(sqlite_template: Copies, tmp_path: Path) -> Iterator[Terminal]:
    """What the command line says does not depend on the kind of database."""
    with (
        sqlite_template() as url,
        opened(url) as database,
        serving_control(database, tmp_path) as plane,
    ):
        yield Terminal(plane.address)


def test_a_new_token_stands_alone_on_the_standard_output(terminal: Terminal) -> None:
    made = terminal.type("token", "create", "console", "--role", "viewer")
    assert made.stdout.startswith("mp_")
    assert len(made.stdout.split()) == 1
    assert "cannot be shown again" in made.stderr


def test_a_token_that_never_expires_has_to_be_asked_for(terminal: Terminal) -> None:
    usual = terminal.type("token", "create", "console", "--role", "viewer")
    assert "works until 2" in usual.stderr
    lasting = terminal.type("token", "create", "console", "--role", "viewer", "--never")
    assert "works until it is revoked" in lasting.stderr
    words = ["token", "create", "console", "--role", "viewer", "--never", "--days", "3"]
    assert "either --days or --never" in terminal.type(*words, code=2).stderr


def test_a_token_serves_from_the_environment_and_from_a_file(
    terminal: Terminal, tmp_path: Path
) -> None:
    words = ["token", "create", "console", "--role", "viewer", "--tenant", "north", "--days", "1"]
    made = json.loads(terminal.type(*words, "--json").stdout)
    assert (made["role"], made["tenant"]) == ("viewer", "north")
    assert made["expire_time"]
    file = tmp_path / "token"
    file.write_text(made["secret"] + "\n")
    for environment in (
        {"MEDIAPLANE_TOKEN": made["secret"]},
        {"MEDIAPLANE_TOKEN_FILE": str(file)},
    ):
        terminal.type("library", "list", **environment)
        told = terminal.type("job", "cancel", "7", code=1, **environment)
        assert "needs the role operator" in told.stderr
    terminal.type("token", "revoke", "1")
    (listed,) = json.loads(terminal.type("token", "list", "--json").stdout)["tokens"]
    assert listed["revoke_time"]
    assert made["secret"] not in terminal.type("token", "list").output


def test_what_was_done_is_shown_by_the_audit_log(terminal: Terminal) -> None:
    terminal.type("token", "create", "console", "--role", "viewer")
    (entry,) = json.loads(terminal.type("audit", "list", "--json").stdout)["entries"]
    assert (entry["method"], entry["resource"]) == ("TokenService/CreateToken", "tokens/1")
    assert (entry["caller"], entry["peer"], entry["code"]) == ("local", "local", "OK")
    assert "TokenService/CreateToken" in terminal.type("audit", "list").stdout


def test_a_role_that_does_not_exist_is_a_usage_error(terminal: Terminal) -> None:
    told = terminal.type("token", "create", "console", "--role", "emperor", code=2)
    assert "viewer, operator, admin, worker" in told.stderr


def test_a_token_is_revoked_by_its_number_and_never_typed(terminal: Terminal) -> None:
    told = terminal.type("token", "revoke", "mp_" + "A" * 43, code=2)
    assert "number" in told.stderr
    assert "AAAA" not in told.output


@pytest.mark.parametrize(
    "environment",
    [
        {"MEDIAPLANE_TOKEN_FILE": "/does/not/exist"},
        {"MEDIAPLANE_TOKEN": "two words"},
        {"MEDIAPLANE_TLS_CLIENT_CERT": __file__},
        {"MEDIAPLANE_TLS_CA": "/does/not/exist"},
    ],
)
def test_credentials_that_cannot_be_used_are_named(environment: dict[str, str]) -> None:
    with pytest.raises(UnusableSettings, match=next(iter(environment))):
        Credentials.from_environment(environment)


def test_what_is_printed_of_credentials_holds_no_secret() -> None:
    shown = repr(Credentials("mp_secret", None, b"certificate", b"private"))
    assert "mp_secret" not in shown
    assert "private" not in shown
