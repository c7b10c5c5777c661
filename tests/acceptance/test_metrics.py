"""A control plane as a process of its own serves metrics where it is told to, or does not start."""

import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from mediaplane.locations import Locations
from mediaplane.planes import command_line, is_serving
from tests.support.commands import Commands
from tests.support.ports import free_address
from tests.support.waiting import eventually

DEADLINE_SECONDS = 180.0


@contextmanager
def control_plane(commands: Commands, address: str) -> Iterator[subprocess.Popen[str]]:
    """A control plane that nobody but the test ends."""
    locations = Locations.from_environment(commands.environment)
    metrics = {"MEDIAPLANE_CONTROL_METRICS_ADDRESS": address}
    with subprocess.Popen(
        command_line("control_plane"),
        env=commands.environment | locations.environment() | metrics,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def roots_up(address: str) -> list[str]:
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as response:
            lines = response.read().decode().splitlines()
    except URLError:
        return []
    return [line for line in lines if line.startswith("mediaplane_library_root_up{")]


def test_a_folder_that_vanishes_is_shown_as_soon_as_a_scan_misses_it(
    commands: Commands, tmp_path: Path
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(b"a")
    address = free_address()
    with control_plane(commands, address) as process:
        control_address = Locations.from_environment(commands.environment).control_address
        eventually(lambda: is_serving(control_address), DEADLINE_SECONDS)
        commands.run("library", "add", "Photos", folder)
        commands.run("scan", "photos")
        assert roots_up(address) == ['mediaplane_library_root_up{library="photos"} 1.0']
        shutil.rmtree(folder)
        commands.run("scan", "photos", code=1)
        lost = ['mediaplane_library_root_up{library="photos"} 0.0']
        eventually(lambda: roots_up(address) == lost)  # what was told last is kept for a second
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        assert (process.returncode, errors) == (0, "")


def test_a_control_plane_whose_port_for_metrics_is_taken_says_so_and_exits(
    sqlite_commands: Commands,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with control_plane(sqlite_commands, address) as process:
            _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 2
    assert errors.startswith(f"mediaplane: Cannot serve metrics on {address}")
    assert len(errors.splitlines()) == 1
