"""A real Prometheus scrapes both planes, while they work, by the configuration that is shipped."""

import json
import os
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mediaplane.locations import Locations
from mediaplane.planes import command_line, is_serving
from tests.support.commands import Commands
from tests.support.ports import free_address
from tests.support.studio import photo
from tests.support.waiting import eventually

DEADLINE_SECONDS = 180
SHIPPED = Path(__file__).parents[2] / "deploy" / "prometheus"
PICTURES = int(os.environ.get("MEDIAPLANE_TEST_SCRAPED_PICTURES", "12"))
PIECES = int(os.environ.get("MEDIAPLANE_TEST_SCRAPED_PIECES", "300"))
WORK_SECONDS = DEADLINE_SECONDS + (PICTURES + PIECES) / 10


@pytest.fixture(autouse=True)
def _tools() -> None:
    for tool in ("prometheus", "promtool"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is missing: install it (Debian: prometheus), then `make check`")


@contextmanager
def started(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    """A process that ends with the block."""
    with (
        log.open("w") as output,
        subprocess.Popen(
            arguments, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_SECONDS)


@contextmanager
def planes(commands: Commands, directory: Path) -> Iterator[dict[str, str]]:
    """Both planes, each serving metrics; yields where."""
    locations = Locations.from_environment(commands.environment)
    addresses = {"control": free_address(), "data": free_address()}
    environment = commands.environment | locations.environment()
    environment |= {
        f"MEDIAPLANE_{plane.upper()}_METRICS_ADDRESS": address
        for plane, address in addresses.items()
    }
    with ExitStack() as stack:
        for plane in addresses:
            command = command_line(f"{plane}_plane")
            stack.enter_context(started(command, environment, directory / f"{plane}.log"))
        for served in (locations.control_address, locations.data_address):
            eventually(partial(is_serving, served), DEADLINE_SECONDS)
        yield addresses


@contextmanager
def prometheus(addresses: dict[str, str], directory: Path) -> Iterator[str]:
    """A Prometheus with the shipped configuration, in a hurry; yields its address."""
    for file in SHIPPED.glob("*.yml"):
        shutil.copy(file, directory)
    config = directory / "prometheus.yml"
    text = config.read_text().replace(": 15s", ": 1s")
    text = text.replace("127.0.0.1:9464", addresses["control"])
    config.write_text(text.replace("127.0.0.1:9465", addresses["data"]))
    address = free_address()
    arguments = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with started(arguments, dict(os.environ), directory / "prometheus.log"):
        yield address


def ask(address: str, query: str) -> list[dict[str, Any]]:
    """What Prometheus answers to a query, if it answers already."""
    question = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/query?{question}") as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
    except OSError:
        return []
    return found


def claims_rate(commands: Commands, address: str) -> list[dict[str, Any]]:
    """What a recorded rate tells; it begins with the second figure of a counter, and a change."""
    commands.run("job", "probe")
    return ask(address, "machine:mediaplane_claims:rate10m > 0")


def checked(address: str) -> None:
    """What a process tells is clean, as promtool sees it."""
    with urllib.request.urlopen(f"http://{address}/metrics") as response:
        text = response.read()
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_real_prometheus_sees_both_planes_at_work(
    sqlite_commands: Commands, tmp_path: Path
) -> None:
    commands = sqlite_commands
    library = tmp_path / "photos"
    library.mkdir()
    for number in range(PICTURES):
        (library / f"{number}.jpg").write_bytes(photo(200 + number, 150))
    observed = tmp_path / "prometheus"
    observed.mkdir()
    with planes(commands, tmp_path) as addresses, prometheus(addresses, observed) as address:
        commands.run("library", "add", "Photos", library)
        with commands.start("job", "probe", "--items", str(PIECES)) as load:
            commands.run("scan", "photos")
            for metrics in addresses.values():
                checked(metrics)
            load.communicate(timeout=WORK_SECONDS)
        up = 'up{job=~"mediaplane.*"}'
        eventually(lambda: len(ask(address, f"{up} == 1")) == 2, DEADLINE_SECONDS)
        made = f"mediaplane_thumbnails_made_total >= {PICTURES}"
        eventually(lambda: ask(address, made), WORK_SECONDS)
        done = f'mediaplane_steps_total{{machine="job_items",step="complete"}} >= {PIECES}'
        eventually(lambda: ask(address, done), DEADLINE_SECONDS)
        eventually(partial(claims_rate, commands, address), DEADLINE_SECONDS)
        assert {one["metric"]["job"] for one in ask(address, up)} == {
            "mediaplane-control",
            "mediaplane-data",
        }
        for metrics in addresses.values():
            checked(metrics)
        assert ask(address, 'ALERTS{alertstate="firing"}') == []
    for log in (tmp_path / "control.log", tmp_path / "data.log"):
        assert log.read_text() == ""
