"""Tokens are made, listed and revoked over the wire, and none reaches further than its maker."""

from contextvars import copy_context
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from control_plane.policy import tokens as policy
from mediaplane import operation
from mediaplane.client import Client
from mediaplane.credentials import Credentials
from mediaplane.errors import PermissionDenied
from mediaplane.identity import Caller, identify
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.values import Peer, Role
from mediaplane.tokens import Tokens
from mediaplane.v1 import token_service_pb2 as tokens_v1
from tests.support.control import ControlPlane, Refusal, refusal_of, serving_control
from tests.support.databases import Databases
from tests.support.tokens import add_token
from tests.support.waiting import eventually

HOUR_MS = 3_600_000
DAY_SECONDS = 24 * 3600.0
DAY_MS = 24 * HOUR_MS


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


def days_left(control: ControlPlane, token: tokens_v1.Token) -> float:
    with control.database.control.read() as conn:
        now = database_time(conn)
    return (token.expire_time.ToMilliseconds() - now) / DAY_MS


def test_a_token_works_for_ninety_days_unless_told_otherwise(control: ControlPlane) -> None:
    made = operation.create_token(control.client, "console", "viewer")
    assert 89.9 < days_left(control, made.token) <= 90


def test_on_the_machine_itself_a_token_may_last_for_ever(control: ControlPlane) -> None:
    made = operation.create_token(control.client, "console", "viewer", never_expires=True)
    assert not made.token.HasField("expire_time")
    thousand = operation.create_token(control.client, "console", "viewer", "", 1000 * DAY_SECONDS)
    assert days_left(control, thousand.token) > 999


def test_a_token_made_from_another_machine_always_ends(database: Databases, tmp_path: Path) -> None:
    with (
        serving_control(database, tmp_path, remote_token_days=30.0) as control,
        holding(control, add_token(database)) as client,
    ):
        with pytest.raises(grpc.RpcError) as caught:
            operation.create_token(client, "backdoor", "admin", never_expires=True)
        assert refusal_of(caught.value).code is StatusCode.PERMISSION_DENIED
        told = refused(operation.create_token, client, "heir", "admin", "", 31 * DAY_SECONDS)
        assert told.code is StatusCode.PERMISSION_DENIED
        assert "at most 30 days" in told.text
        assert days_left(control, operation.create_token(client, "usual", "admin").token) <= 30
        longest = operation.create_token(client, "longest", "admin", "", 30 * DAY_SECONDS)
        assert days_left(control, longest.token) > 29.9


@pytest.mark.parametrize("peer", [peer for peer in Peer if peer is not Peer.LOCAL])
def test_however_a_remote_caller_is_known_it_makes_no_token_without_an_end(
    database: Databases, peer: Peer
) -> None:
    def create() -> None:
        identify(Caller("somebody", Role.ADMIN, None, peer))
        wanted = policy.Wanted("backdoor", Role.ADMIN, None, None, never_expires=True)
        with database.control.write() as conn:
            policy.create(conn, wanted, 366)

    with pytest.raises(PermissionDenied):
        copy_context().run(create)


def test_a_token_cannot_both_end_and_never_expire(control: ControlPlane) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        operation.create_token(control.client, "console", "viewer", "", 60.0, never_expires=True)
    assert refusal_of(caught.value).code is StatusCode.INVALID_ARGUMENT


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
