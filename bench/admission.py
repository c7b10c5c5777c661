"""Promises of thumbnails: to ask costs little more than a call, and each picture has one."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from random import Random
from typing import Any

from sqlalchemy import text

from bench import databases
from bench.claim_cost import SERIES
from bench.databases import Fresh
from bench.echo import Echoes, running_echo
from bench.verdicts import Verdicts, row, title
from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import control_plane, running
from mediaplane.protocol import migration
from mediaplane.protocol.database import Database
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import Plane
from mediaplane.v1 import thumbnail_service_pb2 as pb

CALLERS = 12
REQUESTS = 12_000
HOT_FILES = 800
SIZES_PX = (160, 320)
BATCH = 500
ROUNDS = 90
WARM_UP_ROUNDS = 3
# So many that each measured request is of a picture that nobody has asked for.
FILES = HOT_FILES + (BATCH + 1) * (ROUNDS + WARM_UP_ROUNDS)
LIBRARY = "photos"
PATH = {"sqlite": "CAST(i AS BLOB)", "postgresql": "convert_to(i::text, 'UTF8')"}


def main() -> int:
    """Measure, print and judge."""
    verdicts = Verdicts()
    print(f"processors: {os.cpu_count()}; {ROUNDS} calls of each in turn; median, lowest, highest")
    with databases.sqlite() as fresh, running_echo() as echoes:
        _measure("SQLite", fresh, echoes, verdicts)
    with databases.postgresql() as (fresh, settings), running_echo() as echoes:
        print("\nPostgreSQL:", ", ".join(f"{name}={value}" for name, value in settings.items()))
        _measure("PostgreSQL", fresh, echoes, verdicts)
    missed = verdicts.missed
    print(f"\n{'MISSED: ' + '; '.join(missed) if missed else 'every promise was kept'}")
    return int(bool(missed))


def _measure(name: str, fresh: Fresh, echoes: Echoes, verdicts: Verdicts) -> None:
    title(f"{REQUESTS:,} requests by {CALLERS} callers for {HOT_FILES} files, {name}")
    with _serving(fresh) as (client, database):
        _judge_crowd(client, database, verdicts)
        # As PostgreSQL does by itself within a minute: until then it takes the table for empty.
        _analyze(database)
        title(f"One request, and one for {BATCH}, {name}")
        _judge_cost(client, database, echoes, verdicts)


def _judge_crowd(client: Client, database: Database, verdicts: Verdicts) -> None:
    """Have many ask for few pictures, in an order of their own."""
    start = threading.Barrier(CALLERS)
    wanted = [(file, size) for file in range(1, HOT_FILES + 1) for size in SIZES_PX]

    def ask(caller: int) -> dict[tuple[int, int], str]:
        chosen = Random(caller).choices(wanted, k=REQUESTS // CALLERS)
        start.wait()
        call = client.thumbnail_service.RequestThumbnail
        return {(file, size): call(_request(file, size)).name for file, size in chosen}

    began = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(ask, range(CALLERS)))  # an error of one would end it all
    seconds = time.perf_counter() - began
    names: dict[tuple[int, int], set[str]] = {}
    for answer in answers:
        for picture, name in answer.items():
            names.setdefault(picture, set()).add(name)
    with database.read() as conn:
        rows = int(conn.execute(text("SELECT count(*) FROM thumbnails")).scalar_one())
    row("requests", [REQUESTS / seconds], "a second")
    verdicts.at_most("most thumbnails of one picture", max(map(len, names.values())), 1)
    verdicts.at_most("rows beyond one for each picture", abs(rows - len(names)), 0)


def _judge_cost(client: Client, database: Database, echoes: Echoes, verdicts: Verdicts) -> None:
    """Compare calls, while as many thumbnails wait as the crowd has asked for."""
    service, rounds = client.thumbnail_service, WARM_UP_ROUNDS + ROUNDS
    unknown = (_request(file, SIZES_PX[0]) for file in count(HOT_FILES + 1))
    # Made before: what the caller does is not what is judged.
    single = iter([next(unknown) for _ in range(rounds)])
    batches = iter(
        [pb.BatchRequestThumbnailsRequest(requests=islice(unknown, BATCH)) for _ in range(rounds)]
    )
    known = _request(1, SIZES_PX[0])
    calls: dict[str, Callable[[], Any]] = {
        "a new thumbnail": lambda: service.RequestThumbnail(next(single)),
        f"{BATCH} new thumbnails": lambda: service.BatchRequestThumbnails(next(batches)),
        "a known thumbnail": partial(service.RequestThumbnail, known),
        "an echo of a thumbnail": echoes(service.RequestThumbnail(known)),
    }
    measured: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            measured[name].append((time.perf_counter() - began) * 1000)
        _make_thumbnails(database)
    new, many, _, echo = (
        row(name, values[WARM_UP_ROUNDS:], "ms") for name, values in measured.items()
    )
    verdicts.at_most("a new thumbnail, times an echo", new / echo, 4)
    verdicts.at_most(f"a batch of {BATCH}, times an echo", many / echo, 25)


def _make_thumbnails(database: Database) -> None:
    """End what waits beyond as many as the crowd has asked for, the oldest first as workers do."""
    with database.write() as conn:
        conn.execute(
            text(
                "UPDATE thumbnails SET status = 'ready' WHERE status = 'pending' AND id <="
                " (SELECT id FROM thumbnails WHERE status = 'pending' ORDER BY id DESC"
                f"  LIMIT 1 OFFSET {HOT_FILES * len(SIZES_PX)})"
            )
        )


def _request(file: int, size_px: int) -> pb.RequestThumbnailRequest:
    return pb.RequestThumbnailRequest(file=f"libraries/{LIBRARY}/files/{file}", size_px=size_px)


@contextmanager
def _serving(fresh: Fresh) -> Iterator[tuple[Client, Database]]:
    """Run a control plane over a library of pictures, with room for all requests."""
    with fresh() as url, tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as state:
        migration.upgrade(url)
        apply_grants(url)
        database = Database(url, Plane.CONTROL)
        _fill(database)
        environment = {"MEDIAPLANE_STATE": state, "MEDIAPLANE_DATABASE_URL": url}
        os.environ["MEDIAPLANE_THUMBNAIL_CAPACITY"] = str(FILES + REQUESTS)
        locations = Locations.from_environment(environment)
        try:
            with running([control_plane(locations)]), Client(locations.control_address) as client:
                yield client, database
        finally:
            database.close()


def _fill(database: Database) -> None:
    series, path = SERIES[database.dialect].format(count=FILES), PATH[database.dialect]
    with database.write() as conn:
        conn.execute(
            text(
                "INSERT INTO libraries (slug, name, absolute_path, created_at, updated_at)"
                f" SELECT '{LIBRARY}', '{LIBRARY}', {path}, 0, 0 FROM (SELECT 1 AS i) AS n"
            )
        )
        conn.execute(
            text(
                "INSERT INTO library_files (library_id, rel_path, media_type, size_bytes,"
                f" mtime_ns, created_at, updated_at) SELECT '{LIBRARY}', {path}, 'image', i, i,"
                f" 0, 0 FROM ({series}) AS n"
            )
        )
    _analyze(database)


def _analyze(database: Database) -> None:
    with database.write() as conn:
        conn.execute(text("ANALYZE"))


if __name__ == "__main__":
    sys.exit(main())
