"""The doctor looks at the state directory: permissions, room and leftovers."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mediaplane.doctor import state
from mediaplane.doctor.finding import Level
from mediaplane.locations import Locations, life_of
from tests.doctor.reading import levels, only
from tests.faults.mounts import small_disk
from tests.support.tree import unprivileged

# Run where file permissions hold, also for root.
_LOOK = """
import json, os, sys
from mediaplane.doctor import state
from mediaplane.locations import Locations
locations = Locations.from_environment({"MEDIAPLANE_STATE": sys.argv[1]})
print(json.dumps([[one.check, one.level, one.message] for one in state.look(locations)]))
"""


def look_unprivileged(directory: Path) -> list[list[str]]:
    command = [*unprivileged(), sys.executable, "-c", _LOOK, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_a_private_directory_that_can_be_written_is_well(locations: Locations) -> None:
    assert levels(state.look(locations), "permissions") == ["ok"]


def test_a_directory_that_does_not_exist_yet_is_well_and_is_not_made(tmp_path: Path) -> None:
    locations = Locations.from_environment({"MEDIAPLANE_STATE": str(tmp_path / "new" / "state")})
    assert levels(state.look(locations), "permissions") == ["ok"]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_others_can_look_into_is_warned_of(locations: Locations) -> None:
    locations.state.chmod(0o755)
    found = only(state.look(locations), "permissions", Level.WARNING)
    assert f"chmod 700 {locations.state}" in found.advice


def test_a_cache_that_cannot_be_written_is_a_problem(locations: Locations) -> None:
    cache = locations.state / "cache"
    cache.mkdir()
    cache.chmod(0o500)
    said = [message for _, level, message in look_unprivileged(locations.state)
            if level == "problem"]  # fmt: skip
    assert said == [f"You may not write to {cache}."]


def test_a_directory_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    found = look_unprivileged(tmp_path / "state")
    tmp_path.chmod(0o700)
    assert found[0][:2] == ["permissions", "problem"]


@pytest.mark.parametrize(("size_bytes", "level"), [(16 << 20, "problem"), (256 << 20, "warning")])
def test_little_room_on_the_disk_is_noticed(tmp_path: Path, size_bytes: int, level: str) -> None:
    with small_disk(tmp_path / "disk", size_bytes):
        chosen = {"MEDIAPLANE_STATE": str(tmp_path / "disk" / "state")}
        assert levels(state.look(Locations.from_environment(chosen)), "disk") == [level]


def test_files_of_a_worker_that_was_killed_are_noticed_and_stay(locations: Locations) -> None:
    dead, living = locations.scratch / "dead-1", locations.scratch / "living-1"
    for folder in (dead, living):
        folder.mkdir(parents=True)
        (folder / "half.part").write_bytes(b"12345")
    life = os.open(life_of(living), os.O_RDWR | os.O_CREAT)
    fcntl.flock(life, fcntl.LOCK_EX)
    try:
        found = only(state.look(locations), "leftovers", Level.WARNING)
    finally:
        os.close(life)
    assert found.message.startswith("1 workers that were killed have left 5 bytes")
    assert (dead / "half.part").exists()
