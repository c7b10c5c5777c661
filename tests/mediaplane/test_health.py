"""Probes are answered apart from the calls of clients: does the process live, is it of use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import text

from mediaplane import health
from mediaplane.errors import UnusableSettings
from mediaplane.protocol.database import Database
from tests.support.databases import Copies, Databases, opened
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS, eventually

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Kubelet:
    """Asks as a kubelet does: in plain text, with a deadline."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._health: Any = health_pb2_grpc.HealthStub(channel)  # its type stub lacks the methods

    def ask(self, service: str) -> int:
        request = health_pb2.HealthCheckRequest(service=service)
        return int(
            self._health.Check(request, timeout=PATIENCE_SECONDS, wait_for_ready=True).status
        )


@contextmanager
def probed(
    database: Database,
    patience_seconds: float = 10.0,
    stop: threading.Event | None = None,
    serves: bool = True,
) -> Iterator[Kubelet]:
    address = f"127.0.0.1:{free_port()}"
    with (
        health.answering(address, database, stop or threading.Event(), patience_seconds) as served,
        grpc.insecure_channel(address) as channel,
    ):
        if serves:
            served.set()
        yield Kubelet(channel)


def test_a_plane_whose_database_answers_lives_and_is_ready(database: Databases) -> None:
    for plane in (database.control, database.data):
        with probed(plane) as kubelet:
            probes = [kubelet.ask(name) for name in ("liveness", "readiness", "")]
            assert probes == [SERVING] * 3


def test_a_plane_that_stops_is_not_ready_but_lives(database: Databases) -> None:
    stop = threading.Event()
    with probed(database.control, stop=stop) as kubelet:
        stop.set()
        assert kubelet.ask("readiness") == NOT_SERVING
        assert kubelet.ask("liveness") == SERVING


def test_a_plane_that_does_not_serve_yet_is_not_ready_but_lives(database: Databases) -> None:
    with probed(database.control, serves=False) as kubelet:
        assert kubelet.ask("readiness") == NOT_SERVING
        assert kubelet.ask("liveness") == SERVING


def test_a_database_that_hangs_costs_readiness_and_not_the_life(
    postgres_template: Copies,
) -> None:
    with (
        postgres_template() as url,
        opened(url) as databases,
        probed(databases.data, patience_seconds=0.5) as kubelet,
    ):
        with databases.control.write() as conn:
            conn.execute(text("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE"))
            eventually(lambda: kubelet.ask("readiness") == NOT_SERVING)
            assert kubelet.ask("liveness") == SERVING
        eventually(lambda: kubelet.ask("readiness") == SERVING)


def test_a_database_that_refuses_costs_readiness_until_it_is_back(
    postgres_template: Copies, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        postgres_template() as url,
        opened(url) as databases,
        probed(databases.data, patience_seconds=0.5) as kubelet,
    ):
        with databases.control.write() as conn:
            conn.execute(text("REVOKE SELECT ON alembic_version FROM mediaplane_data_plane"))
        eventually(lambda: kubelet.ask("readiness") == NOT_SERVING)
        assert kubelet.ask("liveness") == SERVING
        with databases.control.write() as conn:
            conn.execute(text("GRANT SELECT ON alembic_version TO mediaplane_data_plane"))
        eventually(lambda: kubelet.ask("readiness") == SERVING)
    told = [entry.message for entry in caplog.records if "database" in entry.message]
    assert told == ["The database does not answer; not ready until it does"]


def test_a_probe_of_something_else_is_told_what_there_is(database: Databases) -> None:
    with probed(database.control) as kubelet, pytest.raises(grpc.RpcError) as caught:
        kubelet.ask("mediaplane.v1.JobService")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert "liveness" in str(caught.value.details())


@pytest.mark.parametrize("address", ["8081", "0.0.0.0", "nowhere.invalid:1:2"])
def test_an_address_that_cannot_be_listened_on_is_refused(
    address: str, database: Databases
) -> None:
    with (
        pytest.raises(UnusableSettings, match=rf"probes on {address}"),
        health.answering(address, database.control, threading.Event()),
    ):
        pass
