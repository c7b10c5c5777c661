"""A caller of one tenant sees nothing of another in any call of either plane, and changes nothing.

The calls come from the descriptors: one without a case in tests/support/tenant_calls.py fails the
first test.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import MessageToString
from grpc import StatusCode

from mediaplane import v1
from mediaplane.client import open_channel
from mediaplane.protocol.tables import metadata
from mediaplane.protocol.values import Role
from mediaplane.v1 import library_service_pb2 as libraries_pb
from tests.support.control import ControlPlane, Refusal, refusal_of, serving_control
from tests.support.data import serving_data
from tests.support.databases import Databases
from tests.support.tenancy import OWNED, UNOWNED, Tenant, dump, nobody, settle
from tests.support.tenant_calls import NAMED, SHARED, UNNAMED, Build
from tests.support.tokens import add_token, bearing
from tests.support.waiting import PATIENCE_SECONDS

DATA_PLANE = ("ContentService", "DataPlaneService")


def methods() -> dict[str, Any]:
    """Every method of both planes, by service and name."""
    modules = (
        importlib.import_module(f"{v1.__name__}.{found.name}")
        for found in pkgutil.iter_modules(v1.__path__)
        if found.name.endswith("_service_pb2")
    )
    services = chain.from_iterable(
        module.DESCRIPTOR.services_by_name.values() for module in modules
    )
    return {
        f"{service.name}/{method.name}": method
        for service in services
        for method in service.methods
    }


METHODS = methods()


@dataclass(frozen=True)
class Two:
    """North, who calls, and South, of whom North must learn nothing."""

    control: ControlPlane
    data_address: str
    north: Tenant
    south: Tenant
    nobody: Tenant
    token: str

    def call(self, called: str, request: Any, token: str = "") -> list[Any] | Refusal:
        """Make a call as North, or as the holder of another token."""
        method = METHODS[called]
        is_of_data = called.partition("/")[0] in DATA_PLANE
        with open_channel(self.data_address if is_of_data else self.control.address) as channel:
            kind = channel.unary_stream if method.server_streaming else channel.unary_unary
            make: Any = kind(
                f"/mediaplane.v1.{called}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            try:
                answer = make(
                    request, metadata=bearing(token or self.token), timeout=PATIENCE_SECONDS
                )
                return list(answer) if method.server_streaming else [answer]
            except grpc.RpcError as error:
                return refusal_of(error)

    def tells_of_south(self, answer: Any) -> bool:
        """Whether an answer has a name of South's, or a part of one."""
        words = "".join(map(MessageToString, answer)) if isinstance(answer, list) else repr(answer)
        names = (getattr(self.south, one.name) for one in fields(Tenant) if one.name != "root")
        return any(re.search(rf"{re.escape(name)}(?!\d)", words) for name in names)


@pytest.fixture
def two(database: Databases, tmp_path: Path) -> Iterator[Two]:
    south = settle(database.control, "south", tmp_path)
    north = settle(database.control, "north", tmp_path)
    token = add_token(database, Role.ADMIN, "north")
    with (
        serving_control(database, tmp_path) as control,
        serving_data(database, tmp_path) as data,
    ):
        ghost = nobody(tmp_path / "nobody")
        yield Two(control, data.address, north, south, ghost, token)


def cases(table: dict[str, list[Build]]) -> list[tuple[str, Build]]:
    return [(called, build) for called, builds in table.items() for build in builds]


def alike(told: Refusal, tenant: Tenant) -> Refusal:
    """A refusal without the names that the caller has sent."""
    words = re.sub(r"\d+", "#", told.text.replace(tenant.name, "*"))
    details = {name: value.replace(tenant.name, "*") for name, value in told.metadata.items()}
    return Refusal(told.code, told.reason, told.domain, details, words)


def test_every_method_of_both_planes_has_a_case() -> None:
    assert {*NAMED, *UNNAMED, *SHARED} == METHODS.keys()


def test_of_every_table_it_is_known_whose_its_rows_are() -> None:
    assert {*OWNED, *UNOWNED} == metadata.tables.keys()


def test_what_another_tenant_has_is_not_found_like_what_nobody_has(two: Two) -> None:
    before = dump(two.control.database.control, "south")
    for called, build in cases(NAMED):
        told = two.call(called, build(two.south))
        expected = two.call(called, build(two.nobody))
        assert isinstance(told, Refusal), called
        assert isinstance(expected, Refusal), called
        assert told.code is StatusCode.NOT_FOUND, (called, told)
        assert alike(told, two.south) == alike(expected, two.nobody), called
    assert dump(two.control.database.control, "south") == before


def test_what_a_tenant_has_is_found_and_nothing_of_another_with_it(two: Two) -> None:
    before = dump(two.control.database.control, "south")
    for called, build in cases(UNNAMED) + cases(NAMED):
        answer = two.call(called, build(two.north))
        assert not two.tells_of_south(answer), (called, answer)
        if isinstance(answer, Refusal):
            # Such as: a second scan, or what is not in the cache. Never: it is not there.
            known = (StatusCode.FAILED_PRECONDITION, StatusCode.ALREADY_EXISTS)
            assert answer.code in known, (called, answer)
    assert dump(two.control.database.control, "south") == before


def test_nobody_of_one_tenant_is_told_of_the_whole_installation(two: Two) -> None:
    for called, build in cases(SHARED):
        told = two.call(called, build(two.north))
        assert isinstance(told, Refusal), called
        assert told.code is StatusCode.PERMISSION_DENIED, called


def test_who_sees_all_tenants_sees_both(two: Two) -> None:
    everything = add_token(two.control.database, Role.ADMIN, None)
    for called, build in cases(NAMED):
        if METHODS[called].name.startswith(("Get", "List", "Read")):
            for tenant in (two.north, two.south):
                answer = two.call(called, build(tenant), everything)
                is_found = not isinstance(answer, Refusal) or answer.code is not (
                    StatusCode.NOT_FOUND
                )
                assert is_found, (called, answer)
    assert two.tells_of_south(
        two.call("LibraryService/ListLibraries", libraries_pb.ListLibrariesRequest(), everything)
    )
