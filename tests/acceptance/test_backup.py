"""Backups and restores as operators make them, while both planes are at work."""

from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from mediaplane.protocol.engines import sqlite_url
from tests.faults.invariants import check_file
from tests.support import postgres, tree
from tests.support.commands import Commands
from tests.support.databases import administrator, opened, postgres_database
from tests.support.postgres import PostgresServer, runnable_binaries
from tests.support.waiting import PATIENCE_SECONDS, eventually

FILES = 1500


def test_a_backup_under_load_is_restored_and_its_work_goes_on(
    sqlite_commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who restores is not to wait a minute for the leases that the backup remembers.
    monkeypatch.setenv("MEDIAPLANE_LEASE_SECONDS", "5")
    commands, root = sqlite_commands, tmp_path / "library"
    commands.environment["MEDIAPLANE_LEASE_SECONDS"] = "5"
    root.mkdir()
    tree.generate(root, FILES)
    copy = tmp_path / "copy.db"
    commands.run("library", "add", "library", root)
    with commands.planes():
        commands.run("scan", "library", "--no-wait")
        with commands.client() as client:
            eventually(lambda: any(client.files("library", has_error=False,
                                                include_missing=False)))  # fmt: skip
        probe = commands.start("job", "probe", "--items", "400", "--seconds", "0")
        made = commands.json("db", "backup", copy)
        refused = commands.run("db", "restore", copy, code=1)
        probe.communicate(timeout=PATIENCE_SECONDS)
    assert "is in use" in refused.stderr
    assert made["size_bytes"] == copy.stat().st_size
    with opened(sqlite_url(copy)) as database:
        check_file(database)
    restored = commands.json("db", "restore", copy)
    assert Path(restored["kept"]).exists()
    commands.run("up", root, "--once", "--no-media")
    assert commands.groups({"library": root}) == tree.brute_force(root)
    states = {job["state"] for job in commands.json("job", "list")["jobs"]}
    assert states <= {"completed", "pending", "running", "retryable"}  # nothing was lost


def test_a_backup_over_a_file_and_a_restore_of_rubbish_say_what_to_do(
    first_commands: Commands, tmp_path: Path
) -> None:
    commands, copy = first_commands, tmp_path / "copy.db"
    commands.run("db", "upgrade")
    commands.run("db", "backup", copy)
    assert "--force" in commands.run("db", "backup", copy, code=1).stderr
    commands.run("db", "backup", copy, "--force")
    copy.write_bytes(b"rubbish")
    assert "Nothing was changed" in commands.run("db", "restore", copy, code=1).stderr


def test_a_checkpoint_is_made_and_listed(sqlite_commands: Commands) -> None:
    commands = sqlite_commands
    with commands.planes():
        made = commands.json("db", "checkpoint", "--mode", "truncate", "--force", "--wait")
        assert made["checkpoint"]["state"] == "completed"
        assert "is completed" in commands.run("db", "checkpoint", "--wait").stdout
        (second, first) = commands.json("db", "checkpoints")["checkpoints"]
    assert (first["mode"], second["mode"]) == ("truncate", "passive")
    assert (first["busy"], first["log_frames"], first["checkpointed_frames"]) == (0, 0, 0)
    assert second["log_frames"] == second["checkpointed_frames"] > 0


def test_postgresql_is_dumped_and_restored_by_its_own_tools(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    if postgres_server.data_directory is None:
        pytest.skip("the server is not ours, and neither are its tools")
    folder = postgres_server.data_directory.parent
    binaries, dump = runnable_binaries(16, folder), folder / "backup.dump"
    with postgres_database(postgres_server.url) as url:
        commands = Commands(tmp_path / "state", url)
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        commands.run("db", "upgrade")
        commands.run("library", "add", "before", tmp_path / "a")
        advice = commands.run("db", "backup", "backup.dump", code=1).stderr
        assert "pg_dump --format=custom --file=FILE URL" in advice
        assert "max_wal_size" in commands.run("db", "checkpoint", code=1).stderr
        postgres.run(
            [binaries / "pg_dump", "--format=custom", f"--file={dump}", plain(url)], folder
        )
        commands.run("library", "add", "since", tmp_path / "b")
        advice = commands.run("db", "restore", "backup.dump", code=1).stderr
        assert "pg_restore --clean --if-exists --no-owner --dbname=URL FILE" in advice
        options = ["--clean", "--if-exists", "--no-owner", f"--dbname={plain(url)}"]
        postgres.run([binaries / "pg_restore", *options, dump], folder)
        assert [one["slug"] for one in commands.json("library", "list")["libraries"]] == ["before"]
        commands.run("db", "upgrade")
        with administrator(url) as conn:
            rights = (
                "SELECT has_column_privilege('mediaplane_data_plane', 'jobs', 'status', 'UPDATE')"
            )
            assert conn.execute(text(rights)).scalar()


def plain(url: str) -> str:
    """The URL as tools of PostgreSQL take it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
