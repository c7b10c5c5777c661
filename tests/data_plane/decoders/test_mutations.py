"""Damaged, lying and hostile files, by the thousand: each ends as one item, and none does harm."""

import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Failed, Failure, Limits, Order, Output, Product
from data_plane.decoders.pool import Pool
from mediaplane.protocol.values import HashAlgorithm, MediaType
from tests.data_plane.decoders import seeds
from tests.support.waiting import promptly

THREADS = 2
DEADLINE_SECONDS = 5.0
# What a deadline may be late: a look every tenth of a second, and a process to kill and to reap.
LATE_SECONDS = 2.0
KILLS = 10

SETTINGS = DecoderSettings(memory_bytes=1 << 30)
# Memory is looked at ten times a second only; the address space is limited a little above.
PEAK_BYTES = SETTINGS.memory_bytes * 5 // 4

ORDERS = {
    MediaType.IMAGE: Order(
        MediaType.IMAGE,
        [Output(Product.PICTURE, 32), Output(Product.PICTURE, 48)],
        hash_algorithm=HashAlgorithm.BLAKE3,
    ),
    MediaType.VIDEO: Order(
        MediaType.VIDEO,
        [
            Output(Product.PICTURE, 32),
            Output(Product.FRAMES, 32),
            Output(Product.SPRITE, 16),
            Output(Product.SPRITE_INDEX, 16),
        ],
        sampling_limit=4,
    ),
}
SEEDS = {MediaType.IMAGE: seeds.pictures, MediaType.VIDEO: seeds.videos}


@pytest.fixture
def pool() -> Iterator[Pool]:
    with closing(Pool(1, SETTINGS)) as pool:
        yield pool


def decode(pool: Pool, order: Order, content: bytes) -> Done | Failed:
    with ExitStack() as stack:
        source = stack.enter_context(tempfile.TemporaryFile())
        source.write(content)
        source.flush()
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in order.outputs]
        return pool.decode(
            order,
            source.fileno(),
            [output.fileno() for output in outputs],
            DEADLINE_SECONDS,
            lambda: None,
        )


def decode_mutants(media_type: MediaType, numbers: range) -> Counter[str]:
    """Decode damaged files by one process at a time; return how many ended in which way."""
    sources = SEEDS[media_type]()
    outcomes: Counter[str] = Counter()
    with closing(Pool(1, SETTINGS)) as pool:
        for number in numbers:
            chance = Random(number)
            extension = chance.choice(sorted(sources))
            order = replace(ORDERS[media_type], extension=extension)
            content = seeds.mutated(sources[extension], chance)
            replies: list[Done | Failed] = []
            promptly(
                partial(seconds_of_decode, pool, order, content, replies),
                DEADLINE_SECONDS + LATE_SECONDS,
            )
            reply = replies[-1]
            assert peak_bytes(pool) <= PEAK_BYTES, (extension, number)
            outcomes["done" if isinstance(reply, Done) else reply.code] += 1
    return outcomes


def seconds_of_decode(pool: Pool, order: Order, content: bytes, replies: list[Any]) -> float:
    """Decode once more, and return for how long, unless a process had to be started meanwhile."""
    spawned, began_at = pool.tally().spawned, time.monotonic()
    replies.append(decode(pool, order, content))
    # To start a process takes as long as the machine is busy, and is no item's time.
    return time.monotonic() - began_at if pool.tally().spawned == spawned else 0.0


def peak_bytes(pool: Pool) -> int:
    """The most memory that the process had, if there is one."""
    child = pool._decoders[0]._child
    if child is None:
        return 0
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


@pytest.mark.parametrize(("media_type", "share"), [(MediaType.IMAGE, 0.8), (MediaType.VIDEO, 0.2)])
def test_each_damaged_file_ends_in_time_and_in_its_memory(
    media_type: MediaType, share: float, mutations: int
) -> None:
    count = int(mutations * share)
    with ThreadPoolExecutor(THREADS) as threads:
        runs = [
            threads.submit(decode_mutants, media_type, range(first, count, THREADS))
            for first in range(THREADS)
        ]
        outcomes: Counter[str] = sum((run.result() for run in runs), Counter())
    print(dict(outcomes))  # noqa: T201 - shown by pytest when the test fails
    assert outcomes.total() == count
    # The damage did something, and not too much.
    assert outcomes["done"] > count / 20
    assert outcomes[Failure.BROKEN] > count / 20


@pytest.mark.parametrize("media_type", MediaType)
def test_every_format_can_be_decoded_behind_the_sandbox(media_type: MediaType, pool: Pool) -> None:
    for extension, content in SEEDS[media_type]().items():
        reply = decode(pool, replace(ORDERS[media_type], extension=extension), content)
        assert isinstance(reply, Done), (extension, reply)
        assert not reply.is_degraded, extension
    assert pool.tally().spawned == 1


@pytest.mark.parametrize(
    ("content", "extension"),
    [
        (seeds.png_claiming(50_000, 50_000), "png"),
        (seeds.png_claiming(16, 15_600_000), "png"),
        (seeds.gif_claiming(65_535, 65_535), "gif"),
        (seeds.tiff_claiming(100_000, 100_000), "tif"),
    ],
    ids=["png", "png of many rows", "gif", "tiff"],
)
def test_a_picture_that_claims_too_much_is_refused_by_its_header(
    pool: Pool, content: bytes, extension: str
) -> None:
    reply = decode(pool, replace(ORDERS[MediaType.IMAGE], extension=extension), content)
    assert isinstance(reply, Failed)
    assert reply.code is Failure.TOO_LARGE
    assert peak_bytes(pool) < 256 << 20


@pytest.mark.parametrize(
    ("allows_svg", "codes"),
    [
        (False, {Failure.UNSUPPORTED}),
        (True, {Failure.BROKEN, Failure.TIMED_OUT, Failure.OUT_OF_MEMORY}),
    ],
)
def test_a_drawing_that_multiplies_itself_is_given_up(
    pool: Pool, allows_svg: bool, codes: set[Failure]
) -> None:
    limits = Limits(allows_svg=allows_svg)
    order = replace(ORDERS[MediaType.IMAGE], extension="svg", limits=limits)
    reply = decode(pool, order, seeds.svg_of(depth=12))
    assert isinstance(reply, Failed)
    assert reply.code in codes
    good = decode(pool, replace(order, extension="jpg"), seeds.pictures()["jpg"])
    assert isinstance(good, Done)


def test_items_end_as_they_should_while_their_processes_are_killed_at_random(pool: Pool) -> None:
    sources = seeds.pictures()
    chance = Random(KILLS)
    for number in range(KILLS):
        extension = chance.choice(sorted(sources))
        is_good = bool(number % 2)
        content = sources[extension] if is_good else b"no picture"
        killer = threading.Timer(chance.random() / 50, lambda: kill(pool))
        killer.start()
        reply = decode(pool, replace(ORDERS[MediaType.IMAGE], extension=extension), content)
        killer.join()
        assert isinstance(reply, Done if is_good else Failed), reply
        if isinstance(reply, Failed):
            assert reply.code is Failure.UNSUPPORTED
    assert pool.tally().lost > 0
    assert pool.tally().spawned > pool.tally().lost


def kill(pool: Pool) -> None:
    child = pool._decoders[0]._child
    if child is not None:
        child.process.kill()
