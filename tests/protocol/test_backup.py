"""A backup is one moment of the database, whole or not there; a restore loses nothing."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from mediaplane.errors import UnusableDatabase
from mediaplane.protocol import migration, revision
from mediaplane.protocol.backup import back_up, restore
from mediaplane.protocol.engines import sqlite_url
from tests.faults.mounts import small_disk
from tests.support.databases import Copies, Databases, opened
from tests.support.rows import Rows

# Opens a database as a plane does, says so, writes a library, and stays or dies.
PLANE = """
import os, sys
from sqlalchemy import text
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import Plane
database = Database(sys.argv[1], Plane.CONTROL)
with database.write() as conn:
    conn.execute(text("INSERT INTO libraries (slug, name, absolute_path, created_at, updated_at)"
                      " VALUES ('late', 'late', '/late', 1, 1)"))
print("open", flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.fixture
def url(sqlite_template: Copies, tmp_path: Path) -> str:
    """A database that nobody uses, in a folder of its own."""
    folder = tmp_path / "state"
    folder.mkdir()
    with sqlite_template() as template:
        shutil.copyfile(template.removeprefix("sqlite:///"), folder / "mediaplane.db")
    return sqlite_url(folder / "mediaplane.db")


@contextmanager
def plane(url: str) -> Iterator[None]:
    """Another process that has the database open, and in the end dies without tidying up."""
    process = subprocess.Popen(
        [sys.executable, "-c", PLANE, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "open\n"
    try:
        yield
    finally:
        process.communicate()


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def beside(url: str) -> list[str]:
    """The names of all other files in the folder of a database."""
    path = file_of(url)
    return sorted(file.name for file in path.parent.iterdir() if file != path)


def add_library(url: str, name: str) -> None:
    with opened(url) as database, database.control.write() as conn:
        Rows(conn).add("libraries", slug=name)


def libraries(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as raw:
        return [slug for (slug,) in raw.execute("SELECT slug FROM libraries ORDER BY slug")]


def test_a_disk_without_links_takes_a_backup_too(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_names: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    target = tmp_path / "copy.db"
    assert back_up(url, target).revision == revision.head()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["copy.db"]
    with pytest.raises(UnusableDatabase, match="exists already"):
        back_up(url, target)


def test_a_backup_is_one_plain_file_with_everything(url: str, tmp_path: Path) -> None:
    add_library(url, "one")
    made = back_up(url, tmp_path / "copy.db")
    assert (made.path, made.revision) == (tmp_path / "copy.db", revision.head())
    assert made.size_bytes == made.path.stat().st_size > 100_000
    assert libraries(made.path) == ["one"]
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "state"]


def test_a_backup_has_what_stands_in_the_log_of_a_plane_at_work(url: str, tmp_path: Path) -> None:
    with plane(url):
        assert file_of(url + "-wal").stat().st_size > 0
        back_up(url, tmp_path / "copy.db")
    assert libraries(tmp_path / "copy.db") == ["late"]


def test_a_backup_under_load_is_the_database_of_one_moment(url: str, tmp_path: Path) -> None:
    stop, written = threading.Event(), [0]
    with opened(url) as database:
        with database.control.write() as conn:
            for slug in ("left", "right"):
                Rows(conn).add("libraries", slug=slug, name="0")

        def write() -> None:
            while not stop.is_set():
                written[0] += 1
                for_all = {"name": str(written[0])}
                with database.control.write() as conn:
                    for slug in ("left", "right"):
                        change = text(f"UPDATE libraries SET name = :name WHERE slug = '{slug}'")
                        conn.execute(change, for_all)
                    Rows(conn).add("jobs", payload={"filling": "x" * 10_000})

        thread = threading.Thread(target=write)
        thread.start()
        try:
            counts = []
            for number in range(5):
                before = written[0]
                made = back_up(url, tmp_path / f"{number}.db")
                with closing(sqlite3.connect(made.path)) as raw:
                    left, right = raw.execute("SELECT name FROM libraries").fetchall()
                    counts.append(raw.execute("SELECT count(*) FROM jobs").fetchone()[0])
                assert left == right == (str(counts[-1]),)
                assert counts[-1] >= before - 1
        finally:
            stop.set()
            thread.join()
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_a_file_that_exists_is_replaced_by_force_only(url: str, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(UnusableDatabase, match="exists already"):
        back_up(url, target)
    assert target.read_text() == "precious"
    back_up(url, target, is_replacing=True)
    assert libraries(target) == []


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_a_database_in_use_is_not_replaced_by_its_backup_even_by_force(
    url: str, tmp_path: Path, ending: str
) -> None:
    (tmp_path / "other way").symlink_to(tmp_path / "state")
    with plane(url):
        before = file_of(url + ending).stat().st_ino
        with pytest.raises(UnusableDatabase, match="is the database itself"):
            back_up(url, tmp_path / "other way" / f"mediaplane.db{ending}", is_replacing=True)
        assert file_of(url + ending).stat().st_ino == before
        assert libraries(file_of(url)) == ["late"]


def damage(path: Path) -> None:
    """Overwrite a page in the middle, as a disk does that loses bytes."""
    with path.open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xa5" * 4096 * 4)


# Copies a database, says so, and stays in the middle of that.
COPYING = """
import sys
from pathlib import Path
from mediaplane.protocol import backup
def stay(_path):
    print("copied", flush=True)
    sys.stdin.read()
backup._sync = stay
backup.back_up(sys.argv[1], Path(sys.argv[2]))
"""


def test_what_a_killed_backup_left_is_removed_by_the_next_and_not_before(
    url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    command = [sys.executable, "-c", COPYING, url, str(folder / "monday.db")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout
        assert killed.stdout.readline() == "copied\n"
        back_up(url, folder / "tuesday.db")
        (left,) = folder.glob(".*")
        assert libraries(left / "monday.db") == [], "it is at work, so it stays"
        killed.kill()
    assert left.exists(), "the fault happened"
    back_up(url, folder / "wednesday.db")
    assert sorted(path.name for path in folder.iterdir()) == ["tuesday.db", "wednesday.db"]


def test_what_other_programs_call_partial_is_left_alone(url: str, tmp_path: Path) -> None:
    theirs = tmp_path / ".film.mkv.partial"
    theirs.write_bytes(b"half of it")
    back_up(url, tmp_path / "copy.db")
    assert theirs.read_bytes() == b"half of it"


def test_a_full_disk_is_blamed_for_a_backup_that_does_not_fit(url: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 128 << 10):
        with pytest.raises(UnusableDatabase, match=r"The disk of .*/small is full"):
            back_up(url, tmp_path / "small" / "copy.db")
        assert list((tmp_path / "small").iterdir()) == []


def test_whoever_keeps_the_database_locked_is_blamed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mediaplane.protocol.backup._BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(file_of(url), isolation_level=None)) as selfish:
        selfish.execute("PRAGMA locking_mode = EXCLUSIVE")
        selfish.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnusableDatabase, match=r"keeps .*/mediaplane\.db locked"):
            back_up(url, tmp_path / "copy.db")


def test_a_file_that_cannot_grow_is_blamed_on_its_folder(url: str, tmp_path: Path) -> None:
    limited = f"""
import resource, sys
from pathlib import Path
from mediaplane.errors import UnusableDatabase
from mediaplane.protocol.backup import back_up
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    back_up({url!r}, Path({str(tmp_path / "copy.db")!r}))
except UnusableDatabase as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", limited], check=True, capture_output=True, text=True
    )
    assert f"{tmp_path} could not be written to" in done.stdout
    assert "SQLITE_IOERR_WRITE" in done.stdout


def test_a_damaged_database_makes_no_backup_and_leaves_nothing(url: str, tmp_path: Path) -> None:
    damage(file_of(url))
    with pytest.raises(UnusableDatabase, match=r"mediaplane\.db is damaged|could not be copied"):
        back_up(url, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_database_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match=r"no database at .*absent\.db"):
        back_up(sqlite_url(tmp_path / "absent.db"), tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_restore_brings_back_the_backup_and_keeps_what_was_there(
    url: str, tmp_path: Path
) -> None:
    add_library(url, "before")
    back_up(url, tmp_path / "copy.db")
    add_library(url, "since")
    file_of(url).chmod(0o640)
    restored = restore(url, tmp_path / "copy.db")
    assert libraries(file_of(url)) == ["before"]
    assert file_of(url).stat().st_mode & 0o777 == 0o640
    assert restored.revision == revision.head()
    assert restored.kept
    assert beside(url) == [restored.kept.name]
    assert restored.kept.name.startswith("mediaplane.db.before-restore-")
    assert libraries(restored.kept) == ["before", "since"]
    assert libraries(tmp_path / "copy.db") == ["before"]
    with opened(url) as database, database.control.read() as conn:
        assert conn.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_a_restore_keeps_the_log_of_a_plane_that_was_killed_with_its_database(
    url: str, tmp_path: Path
) -> None:
    back_up(url, tmp_path / "copy.db")
    with plane(url):
        pass
    assert file_of(url + "-wal").stat().st_size > 0
    restored = restore(url, tmp_path / "copy.db")
    assert libraries(file_of(url)) == []
    assert restored.kept
    assert libraries(restored.kept) == ["late"]
    assert beside(url) == [restored.kept.name]


def test_a_restore_is_refused_while_a_process_has_the_database_open(
    url: str, tmp_path: Path
) -> None:
    back_up(url, tmp_path / "copy.db")
    with plane(url):
        with pytest.raises(UnusableDatabase, match="is in use; stop both planes"):
            restore(url, tmp_path / "copy.db")
        assert libraries(file_of(url)) == ["late"]
    assert beside(url) == ["mediaplane.db-shm", "mediaplane.db-wal"]
    restore(url, tmp_path / "copy.db")


def test_a_restore_takes_the_place_of_a_damaged_database_and_of_none(
    url: str, tmp_path: Path
) -> None:
    add_library(url, "good")
    back_up(url, tmp_path / "copy.db")
    file_of(url).write_bytes(b"rubbish" * 1000)
    file_of(url + "-shm").write_bytes(b"rubbish")
    restored = restore(url, tmp_path / "copy.db")
    assert restored.kept
    assert restored.kept.read_bytes() == b"rubbish" * 1000
    assert beside(url) == [restored.kept.name, f"{restored.kept.name}-shm"]
    assert libraries(file_of(url)) == ["good"]
    elsewhere = sqlite_url(tmp_path / "new.db")
    assert restore(elsewhere, tmp_path / "copy.db").kept is None
    assert libraries(tmp_path / "new.db") == ["good"]


def not_a_database(path: Path) -> None:
    path.write_bytes(b"rubbish" * 1000)


def of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE songs (title)")


def of_a_newer_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '0999_next_year'")


def with_a_dangling_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("INSERT INTO events (job_id, type, created_at) VALUES (77, 'log', 1)")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (not_a_database, "damaged or no SQLite database"),
        (damage, "damaged"),
        (with_a_dangling_row, r"row 1 of events refers to nothing"),
        (of_another_program, "is not a database of mediaplane"),
        (of_a_newer_version, r"schema 0999_next_year, which this version does not know"),
        (Path.unlink, "There is no backup at"),
    ],
)
def test_what_is_no_sound_backup_is_refused_and_changes_nothing(
    url: str, tmp_path: Path, change: object, reason: str
) -> None:
    add_library(url, "here")
    copy = back_up(url, tmp_path / "copy.db").path
    assert callable(change)
    change(copy)
    with pytest.raises(UnusableDatabase, match=reason):
        restore(url, copy)
    assert libraries(file_of(url)) == ["here"]
    assert beside(url) == []


def test_a_backup_of_an_older_version_is_restored_and_can_be_upgraded(
    url: str, tmp_path: Path
) -> None:
    older = sqlite_url(tmp_path / "older.db")
    migration.upgrade(older, "0017_lookups")
    copy = back_up(older, tmp_path / "copy.db")
    assert restore(url, copy.path).revision == copy.revision == "0017_lookups"
    migration.upgrade(url)
    assert migration.is_current(url)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_postgresql_is_left_to_its_own_tools(database: Databases, tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match="pg_dump --format=custom"):
        back_up(database.url, tmp_path / "copy.db")
    with pytest.raises(UnusableDatabase, match="pg_restore --clean"):
        restore(database.url, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
