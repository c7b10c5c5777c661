"""The disk under SQLite is full for a while, or loses whatever was not on it when power failed."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

from mediaplane.protocol.database import explain
from mediaplane.protocol.engines import sqlite_url
from tests.faults.mounts import cut_power, make_image, mounted_image, small_disk
from tests.faults.site import Site
from tests.faults.zygote import Zygote
from tests.support.databases import Copies, opened
from tests.support.waiting import eventually

SMALL_BYTES = 24 << 20
IMAGE_BYTES = 64 << 20
POWER_CUTS = 3


@contextmanager
def site_on(
    disk: Path, template: Copies, zygote: Zygote, directory: Path, *, is_new: bool = True
) -> Iterator[Site]:
    """An installation of which everything but the account of its runs lies on a disk."""
    path = disk / "mediaplane.db"
    if is_new:
        with template() as url:
            shutil.copyfile(str(make_url(url).database), path)
    with (
        opened(sqlite_url(path)) as database,
        Site(database, zygote, directory, disk / "state") as site,
    ):
        yield site


def test_a_disk_that_is_full_for_a_while_costs_nothing_but_time(
    sqlite_template: Copies, zygote: Zygote, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with (
        small_disk(disk, SMALL_BYTES),
        site_on(disk, sqlite_template, zygote, tmp_path) as site,
    ):
        processes = [site.start_worker(), site.start_worker(), site.start_control()]
        site.admit(60, seconds=0.1, scratch_bytes=100_000)
        eventually(lambda: site.count("completed") >= 5)
        ballast = fill(disk)
        said = refusal(site)
        eventually(lambda: "full" in said_so_far(site) or "No space" in said_so_far(site))
        assert site.count("completed") < len(site.expected)
        ballast.unlink()
        site.insist("with space again")
        site.wait_until_done()
        assert said == "database or disk is full"
        site.check(processes)


def test_what_was_acknowledged_is_there_after_a_power_cut(
    sqlite_template: Copies, zygote: Zygote, tmp_path: Path
) -> None:
    disk, image = tmp_path / "disk", tmp_path / "image"
    make_image(image, IMAGE_BYTES)
    expected: dict[int, str] = {}
    finished = 0
    for round_number in range(POWER_CUTS + 1):
        with (
            mounted_image(image, disk),
            site_on(disk, sqlite_template, zygote, tmp_path, is_new=round_number == 0) as site,
        ):
            site.expected = expected
            assert site.count("completed") >= finished
            assert site.count("completed", "pending", "running", "retryable") == len(expected)
            processes = [site.start_worker(), site.start_control()]
            if round_number < POWER_CUTS:
                finished = work_until_power_is_cut(site, disk)
                for pid in processes:
                    assert zygote.kill(pid)
            else:
                site.wait_until_done()
                site.check(processes)


def work_until_power_is_cut(site: Site, disk: Path) -> int:
    """Admit and finish jobs up to a power cut; return how many were seen to be completed."""
    target = site.count("completed") + 10
    site.admit(30, seconds=0.02, scratch_bytes=1000)
    eventually(lambda: site.count("completed") >= target)
    site.admit(5)
    finished = site.count("completed")
    cut_power(disk)
    with pytest.raises(OSError, match="Input/output error"):
        (disk / "mediaplane.db").read_bytes()
    return finished


def test_every_connection_waits_for_the_disk_before_it_acknowledges(sqlite_site: Site) -> None:
    full = 2
    for database in (sqlite_site.database.control, sqlite_site.database.data):
        with database.read() as one, database.read() as another, database.write() as third:
            for conn in (one, another, third):
                raw: Any = conn.connection.driver_connection
                raw.set_authorizer(None)  # the data plane may not even ask
                assert raw.execute("PRAGMA synchronous").fetchone() == (full,)
                assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def fill(disk: Path) -> Path:
    """Leave no space on a disk."""
    path, block = disk / "ballast", bytes(4096)
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        repeat(lambda: file.write(block))
    return path


def refusal(site: Site) -> str:
    """Ask for jobs until there is no room for more, and return what is said then."""
    with pytest.raises(OperationalError) as caught:
        repeat(lambda: site.admit(50))
    return explain(caught.value)


def repeat(act: Callable[[], object]) -> NoReturn:
    while True:
        act()


def said_so_far(site: Site) -> str:
    return site.log.read_text() if site.log.exists() else ""
