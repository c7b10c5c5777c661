"""Commands as processes: they start what they need, share it, stop it, and survive being killed."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import tree
from tests.support.commands import Commands
from tests.support.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture
def library(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    for number in range(40):
        (root / f"{number}.jpg").write_bytes(b"%d" % (number // 2))
    return root


def test_ctrl_c_ends_up_cleanly_and_leaves_no_process(
    first_commands: Commands, library: Path
) -> None:
    process = first_commands.start("up", library)
    eventually(lambda: first_commands.state.joinpath("control.sock").exists())
    eventually(lambda: len(planes_of(first_commands)) == 3)
    wait_for_line(process, "Ctrl-C stops")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert planes_of(first_commands) == []


def test_a_scan_does_not_wait_for_the_next_look_of_the_control_plane(
    commands: Commands, library: Path
) -> None:
    commands.environment["MEDIAPLANE_ABSORB_SECONDS"] = str(2 * PATIENCE_SECONDS)
    assert commands.json("up", library, "--once")["elapsed_seconds"] < PATIENCE_SECONDS


def test_up_ends_and_says_so_when_its_data_plane_is_told_to_shut_down(
    sqlite_commands: Commands, library: Path
) -> None:
    process = sqlite_commands.start("up", library)
    wait_for_line(process, "Ctrl-C stops")
    sqlite_commands.run("worker", "shutdown", "--all")
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert "The data plane at" in errors
    assert "has stopped" in errors
    assert planes_of(sqlite_commands) == []


def test_a_command_that_is_killed_takes_its_planes_with_it(
    sqlite_commands: Commands, library: Path
) -> None:
    process = sqlite_commands.start("up", library)
    wait_for_line(process, "Ctrl-C stops")
    # Both, and the process of which those that hash are forks.
    assert len(planes_of(sqlite_commands)) == 3
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    eventually(lambda: planes_of(sqlite_commands) == [])
    # What it left behind does not keep the next command from starting.
    assert len(sqlite_commands.json("duplicates", "list")["groups"]) == 20


def test_a_second_command_uses_the_planes_of_the_first(
    sqlite_commands: Commands, library: Path
) -> None:
    process = sqlite_commands.start("up", library)
    wait_for_line(process, "Ctrl-C stops")
    before = planes_of(sqlite_commands)
    assert len(sqlite_commands.json("duplicates", "list")["groups"]) == 20
    assert sqlite_commands.json("worker", "list")["workers"][0]["state"] in ("idle", "processing")
    assert planes_of(sqlite_commands) == before
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert planes_of(sqlite_commands) == []


def test_commands_at_the_same_time_share_one_pair_of_planes(
    first_commands: Commands, library: Path
) -> None:
    first_commands.run("library", "add", "Library", library)
    running = [first_commands.start("library", "list", "--json") for _ in range(4)]
    for process in running:
        printed, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, errors
        assert [one["slug"] for one in json.loads(printed)["libraries"]] == ["library"]
    assert planes_of(first_commands) == []


def test_a_run_killed_in_the_middle_is_finished_by_the_next(
    commands: Commands, tmp_path: Path
) -> None:
    root = tmp_path / "library"
    root.mkdir()
    tree.generate(root, 1000, unreadable=False)
    usual = commands.environment
    # Slow enough that none of them comes to its end.
    commands.environment = usual | {
        "MEDIAPLANE_LEASE_SECONDS": "1",
        "MEDIAPLANE_HASH_BYTES_PER_SECOND": "1000",
    }
    killed = 0
    for delay in (0.3, 0.8, 1.5):
        process = commands.start("up", root, "--once", "--json")
        eventually(lambda: len(planes_of(commands)) == 2)
        time.sleep(delay)  # somewhere in the work: the point is that it does not matter where
        process.kill()
        for plane in planes_of(commands):
            os.kill(plane, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_SECONDS)
        killed += process.returncode == -signal.SIGKILL
    assert killed == 3
    commands.environment = usual | {
        "MEDIAPLANE_RECOVERY_SECONDS": "0.2",
        "MEDIAPLANE_RETRY_BASE_SECONDS": "0.2",
    }
    summary = commands.json("up", root, "--once")
    assert commands.groups({"library": root}) == tree.brute_force(root)
    assert summary["errors"] == 0


def test_a_folder_that_does_not_exist_is_named_and_leaves_no_trace(
    sqlite_commands: Commands, tmp_path: Path
) -> None:
    failed = sqlite_commands.run("up", tmp_path / "nowhere", "--once", code=1)
    assert "nowhere" in failed.stderr
    assert sqlite_commands.json("library", "list")["libraries"] == []


def test_every_listing_is_one_json_document(sqlite_commands: Commands, library: Path) -> None:
    with sqlite_commands.planes():
        sqlite_commands.json("up", library, "--once")
        job = sqlite_commands.json("job", "list")["jobs"][0]
        group = sqlite_commands.json("duplicates", "list", "--limit", "1")["groups"][0]
        assert group.keys() >= {"group_key", "file_count", "total_size_bytes", "reclaimable_bytes"}
        for noun, arguments in {
            "libraries": ["library", "list"],
            "files": ["file", "list", "library"],
            "assets": ["asset", "list", "library"],
            "groups": ["duplicates", "list"],
            "jobs": ["job", "list"],
            "workers": ["worker", "list"],
        }.items():
            assert sqlite_commands.json(*arguments)[noun], noun
        assert sqlite_commands.json("duplicates", "files", group["group_key"])["files"]
        assert sqlite_commands.json("job", "show", str(job["id"]))["job"]["state"] == "completed"
        assert sqlite_commands.json("db", "status")


def planes_of(commands: Commands) -> list[int]:
    """Return the processes that run a plane on this state directory, or work for one."""
    found = []
    mark = f"MEDIAPLANE_STATE={commands.state}".encode()
    for entry in Path("/proc").iterdir():
        try:
            program = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes().split(b"\0")
        except (OSError, NotADirectoryError):
            continue
        if (b"control_plane" in program or b"data_plane" in program) and mark in environment:
            found.append(int(entry.name))
    return sorted(found)


def wait_for_line(process: subprocess.Popen[str], words: str) -> None:
    """Read the process's messages until one has these words."""
    assert process.stderr
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"the process ended without saying {words!r}")
