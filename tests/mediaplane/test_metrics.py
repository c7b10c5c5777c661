"""Metrics over HTTP: where they are served, to whom, and how often they are looked for."""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import count
from urllib.error import HTTPError

import pytest
from prometheus_client.core import Metric

from mediaplane import metrics
from mediaplane.errors import UnusableSettings
from tests.support.scraping import scrape
from tests.support.waiting import must_not_block

SETTING = "MEDIAPLANE_CONTROL_METRICS_ADDRESS"
_looks = count(1)


def collect() -> Iterator[Metric]:
    yield metrics.gauge("looks", "How often somebody has looked.", (), {(): next(_looks)})


def serving(address: str, beyond_loopback: bool = False) -> AbstractContextManager[tuple[str, int]]:
    return metrics.serving(collect, address, setting=SETTING, beyond_loopback=beyond_loopback)


@pytest.fixture
def url() -> Iterator[str]:
    with serving("127.0.0.1:0") as (host, port):
        yield f"http://{host}:{port}/metrics"


def test_another_path_is_not_found(url: str) -> None:
    with pytest.raises(HTTPError) as failed:
        scrape(url.removesuffix("metrics"))
    with failed.value as answer:
        assert answer.code == 404


def test_the_process_and_its_python_are_told_of_too(url: str) -> None:
    assert {"looks", "process_resident_memory_bytes", "python_info"} <= scrape(url).keys()


def test_many_scrapes_at_once_cost_one_look(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 3600.0)
    assert len({scrape(url)["looks"][()] for _ in range(5)}) == 1


def test_what_was_told_a_while_ago_is_looked_for_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 0.0)
    assert len({scrape(url)["looks"][()] for _ in range(5)}) == 5


def test_a_scrape_that_fails_gets_no_more_than_a_sentence() -> None:
    def fail() -> Iterator[Metric]:
        raise RuntimeError("secret")

    with (
        metrics.serving(fail, "127.0.0.1:0", setting=SETTING, beyond_loopback=False) as place,
        pytest.raises(HTTPError) as failed,
    ):
        scrape(f"http://{place[0]}:{place[1]}/metrics")
    with failed.value as answer:
        assert answer.code == 500
        said = answer.read().decode()
    assert said == "The metrics could not be collected; the log of this process says why.\n"


def test_a_client_that_asks_for_nothing_keeps_nobody_waiting(url: str) -> None:
    host, port = url.split("/")[2].split(":")
    with must_not_block(), socket.create_connection((host, int(port))):
        assert "looks" in scrape(url)


def test_nobody_listens_once_serving_has_ended() -> None:
    with serving("127.0.0.1:0") as place:
        socket.create_connection(place).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place)


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    with serving("127.0.0.1:0") as (host, port):
        address = f"{host}:{port}"
        with (
            pytest.raises(UnusableSettings, match=rf"Cannot serve .* {address}.*another {SETTING}"),
            serving(address),
        ):
            pass


@pytest.mark.parametrize("beyond_loopback", [False, True])
@pytest.mark.parametrize(
    "address",
    ["9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
     ":9464", "example.org:9464", "unix:/tmp/metrics"],
)  # fmt: skip
def test_an_address_is_an_address_with_a_port(address: str, beyond_loopback: bool) -> None:
    with (
        pytest.raises(UnusableSettings, match=f"{SETTING} is .*must be an address with a port"),
        serving(address, beyond_loopback),
    ):
        pass


@pytest.mark.parametrize("address", ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"])
def test_other_machines_are_not_told_anything_unless_that_is_allowed(address: str) -> None:
    with (
        pytest.raises(UnusableSettings, match="MEDIAPLANE_METRICS_BEYOND_LOOPBACK=1"),
        serving(address),
    ):
        pass


def test_other_machines_are_told_when_that_is_allowed() -> None:
    with serving("0.0.0.0:0", beyond_loopback=True) as (host, port):
        assert host == "0.0.0.0"
        assert "looks" in scrape(f"http://127.0.0.1:{port}/metrics")
