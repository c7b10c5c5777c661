"""`mediaplane doctor` as people run it, with planes and without."""

from pathlib import Path

import pytest

from mediaplane.protocol import migration, revision
from mediaplane.protocol.engines import sqlite_url
from tests.support.commands import Commands

CHECKS = {"python", "sqlite", "permissions", "disk", "leftovers", "planes", "database", "schema",
          "workers", "libraries", "decoders", "sandbox"}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    (root / "picture.jpg").write_bytes(b"no picture")
    return root


def test_an_installation_that_is_well_is_found_so_with_planes_and_without(
    commands: Commands, root: Path
) -> None:
    with commands.planes(), commands.client() as client:
        client.add_library("Library", bytes(root))
        up = commands.json("doctor")
    before = contents(commands.state)
    down = commands.json("doctor")
    assert contents(commands.state) == before
    for report in (up, down):
        assert report["is_well"]
        assert {one["level"] for one in report["findings"]} == {"ok"}, report
        assert {one["check"] for one in report["findings"]} >= CHECKS
    assert "clock" in {one["check"] for one in up["findings"]}


def test_a_problem_is_told_with_what_to_do_and_ends_with_1(
    sqlite_commands: Commands, root: Path
) -> None:
    with sqlite_commands.client() as client:
        client.add_library("Library", bytes(root))
    root.rename(root.with_name("elsewhere"))
    done = sqlite_commands.run("doctor", code=1)
    lines = done.stdout.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("problem"))
    assert "There is no such folder" in lines[place]
    assert "Mount its disk" in lines[place + 1]
    assert lines[-1] == "1 problem, 0 warnings."


def test_of_a_database_of_an_older_version_only_the_way_out_is_told(
    first_commands: Commands,
) -> None:
    (first_commands.state / "run").mkdir(parents=True)
    oldest = min(path.stem for path in revision.VERSIONS.glob("[0-9]*.py"))
    migration.upgrade(sqlite_url(first_commands.state / "mediaplane.db"), oldest)
    told = first_commands.run("doctor", code=1).stdout
    assert "run: mediaplane db upgrade" in told
    assert "no libraries yet" not in told


def test_settings_that_cannot_be_read_end_with_2(sqlite_commands: Commands) -> None:
    sqlite_commands.environment["MEDIAPLANE_STATE"] = "/tmp/\udcff"
    assert "not UTF-8" in sqlite_commands.run("doctor", code=2).stderr


def contents(folder: Path) -> dict[str, int]:
    """Every file, and when it was last changed."""
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}
