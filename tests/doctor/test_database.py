"""The doctor looks at the database: reach, damage, schema, clock and workers."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import make_url

from mediaplane.doctor import database as doctor
from mediaplane.doctor import workers
from mediaplane.doctor.finding import Finding, Level
from mediaplane.protocol import clock, migration, revision
from mediaplane.protocol.engines import checked_url, sqlite_url
from tests.doctor.reading import levels, only
from tests.support.databases import Copies, Databases
from tests.support.planes import Desk
from tests.support.planes import desk as desk


@pytest.fixture
def lone_file(sqlite_template: Copies, tmp_path: Path) -> Path:
    """An SQLite file that nobody has open."""
    with sqlite_template() as url:
        return Path(shutil.copyfile(str(make_url(url).database), tmp_path / "mediaplane.db"))


def look(url: str) -> list[Finding]:
    with doctor.opened(checked_url(url)) as conn:
        return list(doctor.look(conn))


def look_at_workers(url: str) -> list[Finding]:
    with doctor.opened(checked_url(url)) as conn:
        return list(workers.look(conn))


def test_a_current_database_is_well(database: Databases) -> None:
    url, findings = doctor.usable_url(database.url)
    assert url is not None
    assert levels([*findings, *look(database.url)], "schema") == ["ok"]
    assert {one.level for one in look(database.url)} == {Level.OK}


def test_looking_leaves_no_file_beside_a_database_that_nobody_uses(lone_file: Path) -> None:
    folder = lone_file.parent
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    look(sqlite_url(lone_file))
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_what_the_doctor_opens_cannot_be_written(database: Databases) -> None:
    with (
        doctor.opened(checked_url(database.url)) as conn,
        pytest.raises(Exception, match=r"readonly|read-only"),
    ):
        conn.exec_driver_sql("DELETE FROM jobs")


def test_a_server_that_is_away_is_a_problem() -> None:
    url, findings = doctor.usable_url("postgresql://nobody:secret@127.0.0.1:1/none")
    assert url is None
    assert "secret" not in only(findings, "database", Level.PROBLEM).message


def test_a_file_that_is_no_database_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "mediaplane.db").write_bytes(b"not a database, whatever its name says" * 100)
    url, findings = doctor.usable_url(sqlite_url(tmp_path / "mediaplane.db"))
    assert url is None
    assert levels(findings, "database") == ["problem"]


def test_a_damaged_file_is_a_problem(lone_file: Path) -> None:
    pages = bytearray(lone_file.read_bytes())
    for place in range(4096 * 8, len(pages), 4096):
        pages[place : place + 64] = b"\xff" * 64
    lone_file.write_bytes(pages)
    found = only(look(sqlite_url(lone_file)), "integrity", Level.PROBLEM)
    assert "backup" in found.advice


def test_an_older_schema_is_a_problem_with_the_way_out(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "mediaplane.db")
    oldest = min(path.stem for path in revision.VERSIONS.glob("[0-9]*.py"))
    migration.upgrade(url, oldest)
    assert "mediaplane db upgrade" in only(look(url), "schema", Level.PROBLEM).advice


def test_a_schema_of_a_later_version_is_a_problem(desk: Desk, database: Databases) -> None:
    desk.change("UPDATE alembic_version SET version_num = '9999_later'")
    found = only(look(database.url), "schema", Level.PROBLEM)
    assert "9999_later" in found.message


def test_a_database_without_a_schema_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "mediaplane.db").touch()
    assert levels(look(sqlite_url(tmp_path / "mediaplane.db")), "schema") == ["warning"]


@pytest.mark.parametrize(("version", "level"), [((3, 31, 1), "problem"), ((3, 40, 1), "ok")])
def test_an_old_sqlite_is_a_problem(version: tuple[int, ...], level: str) -> None:
    assert doctor.look_at_library(version).level == level


@pytest.mark.parametrize(("version", "level"), [(150008, "problem"), (160004, "ok")])
def test_an_old_postgresql_is_a_problem(version: int, level: str) -> None:
    assert doctor.look_at_server(version).level == level


def test_a_network_file_system_is_a_problem(tmp_path: Path) -> None:
    """The kernel is made to say so, in a namespace of its own."""
    number = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    device = f"{os.major(number)}:{os.minor(number)}"
    mounts.write_text(f"1 0 {device} / {tmp_path} rw - nfs4 server:/media rw\n")
    program = (
        "import sys; from mediaplane.doctor import database;"
        "print(database.usable_url(sys.argv[1])[1][0].message)"
    )
    lie = f'mount --bind {mounts} /proc/$$/mountinfo && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", lie, "sh", sys.executable, "-c", program]
    done = subprocess.run([*command, sqlite_url(tmp_path / "mediaplane.db")],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no mount namespace can be made here: {done.stderr.strip()}")
    assert "network file system (nfs4)" in done.stdout, done.stderr


def test_a_clock_that_differs_from_the_databases_is_warned_of(database: Databases) -> None:
    if make_url(database.url).get_backend_name() == "sqlite":
        assert levels(look(database.url), "clock") == []  # one machine, one clock
        return
    program = (
        "import json, sys; from mediaplane.doctor import database;"
        "from mediaplane.protocol.engines import checked_url\n"
        "with database.opened(checked_url(sys.argv[1])) as conn:"
        " print(json.dumps([[one.level, one.message] for one in database.look(conn)"
        " if one.check == 'clock']))"
    )
    ((level, message),) = run_with_false_clock("-1h", program, database.url)
    assert level == "warning"
    assert "3600 s ahead" in message or "3599 s ahead" in message


def run_with_false_clock(offset: str, program: str, *arguments: str) -> list[list[str]]:
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("libfaketime is missing: make tools installs it")
    false = {"LD_PRELOAD": str(libraries[0]), "FAKETIME": offset,
             "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, env=os.environ | false, capture_output=True, text=True, check=True
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_a_worker_that_has_fallen_silent_is_named(desk: Desk, database: Databases) -> None:
    add_worker(desk, "loud-1", silent_ms=0)
    assert levels(look_at_workers(database.url), "workers") == ["ok"]
    add_worker(desk, "silent-1", silent_ms=50_000)
    assert "silent-1" in only(look_at_workers(database.url), "workers", Level.WARNING).message


def test_jobs_that_nobody_works_on_are_warned_of(desk: Desk, database: Databases) -> None:
    desk.probe()
    found = only(look_at_workers(database.url), "workers", Level.WARNING)
    assert found.message == "1 jobs wait, and no worker is there."


def test_a_worker_elsewhere_whose_decoders_are_not_confined_is_named(
    desk: Desk, database: Databases
) -> None:
    add_worker(desk, "open-1", silent_ms=0, sandboxes=["landlock"])
    found = only(look_at_workers(database.url), "sandbox", Level.WARNING)
    assert "open-1 run without seccomp" in found.message


def add_worker(desk: Desk, name: str, *, silent_ms: int, sandboxes: Sequence[str] = ()) -> None:
    desk.change(
        "INSERT INTO worker_status (worker_id, state, command, stats, started_at, last_seen_at)"
        " SELECT :name, 'idle', 'none', :stats, 0, {now} - :silent".replace(
            "{now}", clock.NOW_SQL[desk.database.dialect]
        ),
        name=name, silent=silent_ms, stats=json.dumps({"sandboxes": sandboxes}),
    )  # fmt: skip
