"""Where a server listens, and where it refuses to."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mediaplane.client import open_channel
from mediaplane.errors import UnusableSettings
from mediaplane.serving import build_server
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS


@contextmanager
def listening(address: str) -> Iterator[None]:
    server, _ = build_server(address, [], calls=1, streams=1)
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()


def answers(address: str) -> bool:
    with open_channel(address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)  # its type stub lacks the methods
        answer = health.Check(
            health_pb2.HealthCheckRequest(), timeout=PATIENCE_SECONDS, wait_for_ready=True
        )
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def test_a_service_with_a_method_that_has_no_rule_is_not_served(tmp_path: Path) -> None:
    unruled = ("grpc.health.v1.Health", lambda _server: None)
    with pytest.raises(RuntimeError, match=r"no rule for .*Health/Check"):
        build_server(f"unix:{tmp_path}/a.sock", [unruled], calls=1, streams=1)


def test_a_second_server_cannot_take_the_port_of_the_first() -> None:
    address = f"127.0.0.1:{free_port()}"
    with listening(address):
        with pytest.raises(UnusableSettings, match=address):
            build_server(address, [], calls=1, streams=1)
        assert answers(address)


def test_a_second_server_cannot_take_the_socket_of_the_first(tmp_path: Path) -> None:
    for address in (f"unix:{tmp_path}/a.sock", f"unix://{tmp_path}/b.sock"):
        with listening(address):
            with pytest.raises(UnusableSettings, match="Another server"):
                build_server(address, [], calls=1, streams=1)
            assert answers(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0:50051",
        "[::]:50051",
        ":50051",
        "*:50051",
        "192.168.1.5:50051",
        "[2001:db8::1]:50051",
        "example.org:50051",
        "localhost.example.org:50051",
        "dns:///localhost:50051",
        "ipv4:0.0.0.0:50051",
        "127.0.0.1:50051,0.0.0.0:50051",
        "0.0.0.0:50051,127.0.0.1:50051",
        "127.0.0.1",
        "",
    ],
)
def test_an_address_that_others_can_reach_or_nobody_can_read_is_refused(address: str) -> None:
    with pytest.raises(UnusableSettings, match="loopback"):
        build_server(address, [], calls=1, streams=1)


def test_every_way_to_name_this_machine_alone_is_served(tmp_path: Path) -> None:
    hosts = ["127.0.0.1", "127.8.9.10", "localhost"]
    for address in (*(f"{host}:{free_port()}" for host in hosts), f"unix:{tmp_path}/a%20b.sock"):
        with listening(address):
            assert answers(address)
    assert not (tmp_path / "a%20b.sock").exists()


def test_a_socket_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    before = os.umask(0)
    try:
        with listening(f"unix:{path}"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.umask(0) == 0, "the umask is the one from before"
    finally:
        os.umask(before)


def test_the_socket_of_a_server_that_died_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert stat.S_ISSOCK(path.lstat().st_mode), "the dead server left its socket behind"
    with listening(f"unix:{path}"):
        assert answers(f"unix:{path}")


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    path.write_bytes(b"precious")
    with pytest.raises(UnusableSettings, match="Cannot listen"):
        build_server(f"unix:{path}", [], calls=1, streams=1)
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["x" * 120, "missing/a.sock"])
def test_a_socket_that_cannot_be_made_is_refused_with_its_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnusableSettings, match=name):
        build_server(f"unix:{tmp_path / name}", [], calls=1, streams=1)
