"""Tokens are made, listed and revoked over the wire, and none reaches further than its maker."""

from typing import Any

import grpc
import pytest
from grpc import StatusCode

from control_plane.policy import tokens as policy
from mediaplane import operation
from mediaplane.client import Client
from mediaplane.credentials import Credentials
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.values import Role
from mediaplane.tokens import Tokens
from mediaplane.v1 import token_service_pb2 as tokens_v1
from tests.support.control import ControlPlane, Refusal, refusal_of
from tests.support.tokens import add_token
from tests.support.waiting import eventually

HOUR_MS = 3_600_000


def refused(call: Any, *arguments: Any) -> Refusal:
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments)
    return refusal_of(caught.value)


def holding(control: ControlPlane, token: str) -> Client:
    return Client(control.address, credentials=Credentials(token))


def test_a_token_made_here_lets_its_holder_in_as_what_it_says(control: ControlPlane) -> None:
    made = operation.create_token(control.client, "console", "viewer", "north")
    assert (made.token.display_name, made.token.creator) == ("console", "local")
    assert (made.token.role, made.token.tenant) == (tokens_v1.ROLE_VIEWER, "north")
    with holding(control, made.secret) as client:
        assert list(client.libraries()) == []
        assert refused(client.cancel_job, "7").code is StatusCode.PERMISSION_DENIED


def test_a_listing_shows_every_token_and_no_secret(control: ControlPlane) -> None:
    made = [operation.create_token(control.client, f"number {n}", "viewer") for n in range(3)]
    listed = list(operation.tokens(control.client))
    assert [one.token for one in made] == listed
    assert not any(one.secret in repr(listed) for one in made)
    page = control.client.token_service.ListTokens(tokens_v1.ListTokensRequest(page_size=2))
    assert (len(page.tokens), bool(page.next_page_token)) == (2, True)


def test_a_revoked_token_is_out_of_use_and_says_since_when(control: ControlPlane) -> None:
    made = operation.create_token(control.client, "console", "viewer")
    with holding(control, made.secret) as client:
        list(client.libraries())
        revoked = operation.revoke_token(control.client, made.token.name)
        assert revoked.HasField("revoke_time")

        def is_refused() -> bool:
            try:
                list(client.libraries())
            except grpc.RpcError as error:
                return error.code() is StatusCode.UNAUTHENTICATED
            return False

        eventually(is_refused)
    assert operation.revoke_token(control.client, made.token.name) == revoked, (
        "the first time counts"
    )


def test_whoever_sees_one_tenant_hands_out_tokens_of_that_tenant_alone(
    control: ControlPlane,
) -> None:
    elsewhere = operation.create_token(control.client, "south's", "viewer", "south")
    with holding(control, add_token(control.database, Role.ADMIN, "north")) as client:
        assert operation.create_token(client, "console", "admin").token.tenant == "north"
        told = refused(operation.create_token, client, "console", "viewer", "south")
        assert told.code is StatusCode.PERMISSION_DENIED
        assert {token.tenant for token in operation.tokens(client)} == {"north"}
        assert (
            refused(operation.revoke_token, client, elsewhere.token.name).code
            is StatusCode.NOT_FOUND
        )
    assert not next(iter(operation.tokens(control.client))).HasField("revoke_time")


def test_no_token_outlives_its_makers(control: ControlPlane) -> None:
    with control.database.control.read() as conn:
        end = database_time(conn) + HOUR_MS
    with holding(control, add_token(control.database, expires_at=end)) as client:
        told = refused(operation.create_token, client, "heir", "viewer", "", 2 * 3600.0)
        assert told.code is StatusCode.PERMISSION_DENIED
        assert (
            operation.create_token(client, "child", "viewer").token.expire_time.ToMilliseconds()
            == end
        )
        child = operation.create_token(client, "child", "viewer", "", 60.0).token
    assert child.expire_time.ToMilliseconds() < end


@pytest.mark.parametrize(
    ("name", "tenant", "lifetime"),
    [
        ("", "", None),
        ("x" * 101, "", None),
        ("line\nbreak", "", None),
        ("\u202eright", "", None),
        ("fine", "North", None),
        ("fine", "north/../south", None),
        ("fine", "", 0.0),
        ("fine", "", -1.0),
    ],
)
def test_what_cannot_be_a_token_is_refused(
    control: ControlPlane, name: str, tenant: str, lifetime: float | None
) -> None:
    told = refused(operation.create_token, control.client, name, "viewer", tenant, lifetime)
    assert told.code is StatusCode.INVALID_ARGUMENT
    assert list(operation.tokens(control.client)) == []


def test_a_token_needs_a_role(control: ControlPlane) -> None:
    request = tokens_v1.CreateTokenRequest(token=tokens_v1.Token(display_name="console"))
    told = refused(control.client.token_service.CreateToken, request)
    assert told.code is StatusCode.INVALID_ARGUMENT
    assert "operator" in told.text


def test_that_a_token_is_used_is_written_down_now_and_then(control: ControlPlane) -> None:
    token = add_token(control.database)
    known = Tokens(control.database.control)
    policy.note_use(control.database.control, known)
    (before,) = operation.tokens(control.client)
    assert not before.HasField("last_use_time")
    known.caller(token)
    policy.note_use(control.database.control, known)
    (after,) = operation.tokens(control.client)
    assert after.HasField("last_use_time")
    assert known.take_used() == []
