"""A token makes its holder known as long as it is valid, and no longer."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from sqlalchemy import select, update

from mediaplane import tokens
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.tables import tokens as table
from mediaplane.protocol.values import Role
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from tests.support.control import PROBE, ControlPlane, refusal
from tests.support.tokens import add_token, bearing
from tests.support.waiting import PATIENCE_SECONDS, eventually

LIST = libraries_v1.ListLibrariesRequest()


def code_of(control: ControlPlane, metadata: Any) -> StatusCode:
    try:
        control.libraries.ListLibraries(LIST, metadata=metadata)
    except grpc.RpcError as error:
        return error.code()
    return StatusCode.OK


def revoke_all(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        conn.execute(update(table).values(revoked_at=database_time(conn)))


def test_a_token_is_256_random_bits_of_which_the_database_keeps_a_hash(
    control: ControlPlane,
) -> None:
    token = add_token(control.database)
    assert token.startswith("mp_")
    assert len(token.removeprefix("mp_")) * 6 >= 256
    assert token != tokens.generate()
    with control.database.control.read() as conn:
        (row,) = conn.execute(select(table)).all()
    assert token.removeprefix("mp_") not in repr(row)
    assert tokens.digest(token) in tuple(row)


def test_a_revoked_token_stops_working_in_a_moment(control: ControlPlane) -> None:
    metadata = bearing(add_token(control.database, Role.VIEWER))
    assert code_of(control, metadata) is StatusCode.OK
    revoke_all(control)
    eventually(lambda: code_of(control, metadata) is StatusCode.UNAUTHENTICATED)
    assert tokens.REMEMBERED_SECONDS <= 5


def test_a_token_that_has_expired_does_not_work(control: ControlPlane) -> None:
    with control.database.control.read() as conn:
        now = database_time(conn)
    old = bearing(add_token(control.database, expires_at=now - 1))
    young = bearing(add_token(control.database, expires_at=now + 3_600_000))
    assert code_of(control, old) is StatusCode.UNAUTHENTICATED
    assert code_of(control, young) is StatusCode.OK


def test_a_stream_ends_when_its_token_is_revoked(control: ControlPlane) -> None:
    metadata = bearing(add_token(control.database, Role.VIEWER))
    # From the first event on: what happens before the server begins to watch would not be told.
    stream: Iterator[Any] = control.jobs.WatchJobs(
        jobs_v1.WatchJobsRequest(after_event_id=0), metadata=metadata, timeout=PATIENCE_SECONDS
    )
    refusals: list[StatusCode] = []

    def is_refused() -> bool:
        control.create(PROBE)  # something to tell, as long as the stream tells anything
        try:
            next(stream)
        except grpc.RpcError as error:
            refusals.append(error.code())
        return bool(refusals)

    assert not is_refused()
    revoke_all(control)
    eventually(is_refused)
    assert refusals == [StatusCode.UNAUTHENTICATED]


@pytest.mark.parametrize(
    "given",
    [
        "Bearer",
        "Bearer mp_short",
        "Basic bWU6c2VjcmV0",
        "mp_" + "A" * 43,
        "Bearer " + "A" * 46,
        "Bearer mp_" + "A" * 43 + "'; DROP TABLE tokens",
    ],
)
def test_what_is_no_token_is_refused_and_not_repeated(control: ControlPlane, given: str) -> None:
    told = refusal(
        lambda request: control.libraries.ListLibraries(
            request, metadata=(("authorization", given),)
        ),
        LIST,
    )
    assert (told.code, told.reason) == (StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    secret = given.partition(" ")[2] or given
    assert len(secret) < 8 or secret not in repr(told)


def test_two_tokens_on_one_call_are_one_too_many(control: ControlPlane) -> None:
    both = bearing(add_token(control.database)) + bearing(add_token(control.database))
    assert code_of(control, both) is StatusCode.UNAUTHENTICATED


def test_the_data_plane_reads_tokens_and_cannot_make_or_change_one(control: ControlPlane) -> None:
    token = add_token(control.database, Role.OPERATOR, "north")
    known = tokens.Tokens(control.database.data).caller(token)
    assert (known.name, known.role, known.tenant_id) == ("operator", Role.OPERATOR, "north")
    with (
        pytest.raises(Exception, match=r"denied|not authorized"),
        control.database.data.write() as conn,
    ):
        conn.execute(update(table).values(role=Role.ADMIN))
