"""Every service that the contract names is served, healthy, described and implemented."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from mediaplane.client import open_channel
from tests.support.control import ControlPlane
from tests.support.data import serving_data
from tests.support.databases import Databases

PROTO = Path(__file__).parents[2] / "proto"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
STANDARD = {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def contracted(plane: str) -> set[str]:
    """The services that the contract gives to a plane, as the .proto files say."""
    served = re.compile(rf"^// {plane} plane\..*\n(?://.*\n)*service (\w+) ", re.MULTILINE)
    files = PROTO.glob("mediaplane/v1/*.proto")
    return {f"mediaplane.v1.{name}" for file in files for name in served.findall(file.read_text())}


@pytest.fixture(params=["Control", "Data"])
def served(
    request: pytest.FixtureRequest, control: ControlPlane, database: Databases, tmp_path: Path
) -> Iterator[tuple[grpc.Channel, set[str]]]:
    """A channel to each plane, and the services that should be at its other end."""
    with serving_data(database, tmp_path) as data:
        address = control.address if request.param == "Control" else data.address
        with open_channel(address) as channel:
            yield channel, contracted(request.param)


def health_of(channel: grpc.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)  # its type stub lacks the methods
    return int(stub.Check(health_pb2.HealthCheckRequest(service=service)).status)


def described(channel: grpc.Channel) -> set[str]:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = stub.ServerReflectionInfo(iter([request]))
    return {service.name for service in answer.list_services_response.service}


def test_each_service_of_the_contract_belongs_to_one_plane() -> None:
    files = PROTO.glob("mediaplane/v1/*.proto")
    named = {name for file in files for name in re.findall(r"(?m)^service (\w+)", file.read_text())}
    control, data = contracted("Control"), contracted("Data")
    assert control | data == {f"mediaplane.v1.{name}" for name in named}
    assert control
    assert data
    assert not control & data


def test_reflection_lists_the_services_of_the_contract_and_no_others(
    served: tuple[grpc.Channel, set[str]],
) -> None:
    channel, expected = served
    assert described(channel) == expected | STANDARD


def test_health_knows_every_service_and_no_other(served: tuple[grpc.Channel, set[str]]) -> None:
    channel, expected = served
    assert {health_of(channel, service) for service in ("", *expected)} == {SERVING}
    with pytest.raises(grpc.RpcError) as caught:
        health_of(channel, "mediaplane.v1.NoService")
    assert caught.value.code() is StatusCode.NOT_FOUND


def test_no_method_of_the_contract_is_a_stub(served: tuple[grpc.Channel, set[str]]) -> None:
    channel, expected = served
    for service in expected:
        for method in Default().FindServiceByName(service).methods:
            assert code_of(channel, method) is not StatusCode.UNIMPLEMENTED, method.full_name


def code_of(channel: grpc.Channel, method: Any) -> StatusCode:
    """Call a method with an empty request, and return how that ended."""
    call: Any = channel.unary_stream if method.server_streaming else channel.unary_unary
    stub = call(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    try:
        # A stream without an end is not a stub either: those are refused at once.
        seconds = 3 if method.server_streaming else 20
        answer = stub(GetMessageClass(method.input_type)(), timeout=seconds)
        if method.server_streaming:
            list(answer)
    except grpc.RpcError as error:
        code: StatusCode = error.code()
        return code
    return StatusCode.OK


def test_a_server_that_is_stopping_says_so_to_who_asks_for_its_health(
    control: ControlPlane,
) -> None:
    with open_channel(control.address) as channel:
        control.states.enter_graceful_shutdown()
        names = ("", *contracted("Control"))
        assert {health_of(channel, service) for service in names} == {NOT_SERVING}
