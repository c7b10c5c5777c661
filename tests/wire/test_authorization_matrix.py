"""Every method times every role times one tenant or all: who is let through, on both planes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from grpc import StatusCode

from mediaplane.authorization import RULES
from mediaplane.client import open_channel
from mediaplane.protocol.values import Role
from tests.support.control import serving_control
from tests.support.data import serving_data
from tests.support.databases import Databases
from tests.support.tokens import add_token, bearing
from tests.support.waiting import PATIENCE_SECONDS

REFUSED = {StatusCode.PERMISSION_DENIED, StatusCode.UNAUTHENTICATED}
LADDER = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
OF_THE_DATA_PLANE = ("/mediaplane.v1.ContentService/", "/mediaplane.v1.DataPlaneService/")
Call = Callable[..., StatusCode]


def expected(path: str, role: Role, tenant_id: str | None) -> bool:
    """What the rule of a method means, said once more and in other words."""
    rule = RULES[path]
    enough = {
        Role.VIEWER: rule.least == "viewer",
        Role.OPERATOR: rule.least in ("viewer", "operator"),
        Role.ADMIN: True,
        Role.WORKER: rule.is_for_workers,
    }[role]
    return enough and (tenant_id is None or not rule.is_shared)


def caller_of(channel: grpc.Channel, path: str) -> Call:
    """Return how to call a method with a request that can harm nothing; it tells the code."""
    service, method = path.removeprefix("/").split("/")
    described = descriptor_pool.Default().FindServiceByName(service).methods_by_name[method]
    request: Any = message_factory.GetMessageClass(described.input_type)()
    if "names" in described.input_type.fields_by_name:
        request.names.append("jobs/999999")  # instead of all that there are, for ever
    kind = channel.unary_stream if described.server_streaming else channel.unary_unary
    response = message_factory.GetMessageClass(described.output_type)
    stub: Any = kind(path, type(request).SerializeToString, response.FromString)

    def call(**options: Any) -> StatusCode:
        try:
            answer = stub(request, timeout=PATIENCE_SECONDS, **options)
            if described.server_streaming:
                list(answer)
        except grpc.RpcError as error:
            return error.code()
        return StatusCode.OK

    return call


@pytest.fixture
def calls(database: Databases, tmp_path: Path) -> Iterator[dict[str, Call]]:
    """Every method of both planes, by its path."""
    with (
        serving_control(database, tmp_path) as control,
        serving_data(database, tmp_path) as data,
        open_channel(control.address) as to_control,
        open_channel(data.address) as to_data,
    ):
        yield {
            path: caller_of(to_data if path.startswith(OF_THE_DATA_PLANE) else to_control, path)
            for path in RULES
        }


def test_each_role_is_let_through_to_its_methods_and_to_no_other(
    database: Databases, calls: dict[str, Call]
) -> None:
    cases = [(role, tenant_id) for role in Role for tenant_id in (None, "north")]
    tokens = {case: bearing(add_token(database, *case)) for case in cases}
    wrong = []
    for path, call in calls.items():
        for case in cases:
            code = call(metadata=tokens[case])
            assert code not in (StatusCode.UNIMPLEMENTED, StatusCode.INTERNAL), path
            if (code is not StatusCode.PERMISSION_DENIED) is not expected(path, *case):
                wrong.append((path, *case, code))
    assert wrong == []


def test_without_a_valid_token_nothing_is_answered_where_one_is_given(
    database: Databases, calls: dict[str, Call]
) -> None:
    stranger = bearing("mp_" + "A" * 43)
    for path, call in calls.items():
        assert call(metadata=stranger) is StatusCode.UNAUTHENTICATED, path
        assert call() not in REFUSED, path  # on this socket, no token is needed
