"""What the planes say and write down while things go wrong around hostile names."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from sqlalchemy import text

from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import command_line, is_serving
from mediaplane.v1 import job_service_pb2 as jobs_v1
from tests.support.databases import Databases
from tests.support.tree import unprivileged
from tests.support.waiting import PATIENCE_SECONDS, eventually

# File names that try to hide, to forge a line of the log, and to move the cursor.
HOSTILE = [
    b"secret-\n2026-01-01 00:00:00,000 ERROR forged: all is lost.jpg",
    "secret-\u202egpj.exe".encode(),
    b"secret-\x1b[2J\x1b[31m.jpg",
    b"secret-\xff\xfe.jpg",
]


@contextmanager
def plane(module: str, locations: Locations) -> Iterator[Path]:
    """A plane as a process of its own; yields the file of its standard error."""
    said = locations.state / f"{module}.stderr"
    with said.open("wb") as stream:
        process = subprocess.Popen(
            [*unprivileged(), *command_line(module)],
            env=os.environ | locations.environment() | {"MEDIAPLANE_SLOTS": "1"},
            stdin=subprocess.DEVNULL,
            stderr=stream,
        )
        try:
            yield said
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def test_neither_statuses_nor_logs_hold_paths_sql_or_secrets(
    database: Databases, tmp_path: Path
) -> None:
    root = tmp_path / "secret-root"
    root.mkdir()
    for name in HOSTILE:
        (root / os.fsdecode(name)).write_bytes(b"not a picture")
    locations = Locations.from_environment(
        {"MEDIAPLANE_DATABASE_URL": database.url}, tmp_path / "state"
    )
    locations.prepare()
    told: list[str] = []
    with (
        plane("control_plane", locations) as control,
        plane("data_plane", locations) as data,
        Client(locations.control_address, locations.data_address) as client,
    ):
        eventually(lambda: is_serving(locations.control_address))
        eventually(lambda: is_serving(locations.data_address))
        client.add_library("pictures", bytes(root), "pictures")
        job = client.scan("pictures")
        eventually(lambda: client.job(job.name).state == jobs_v1.Job.STATE_COMPLETED)
        with database.control.write() as conn:
            conn.execute(text("ALTER TABLE jobs RENAME TO hidden"))
        for number in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                client.job(str(number + 1))
            told.append(repr(caught.value.details()))
        eventually(lambda: "DBAPI" in control.read_text() or "exc." in control.read_text())
        eventually(lambda: "exc." in data.read_text())
        with database.control.write() as conn:
            conn.execute(text("ALTER TABLE hidden RENAME TO jobs"))
    written = [*told, control.read_text(), data.read_text()]
    assert all(written)
    for words in written:
        for leaked in ("SELECT", "UPDATE ", "INSERT", "secret", "forged", str(tmp_path)):
            assert leaked not in words
        assert all(line.isprintable() for line in words.splitlines())
