"""A pool of decoders, and a workshop that has it make things."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Failed, Order, Output, Product
from data_plane.decoders.pool import Pool
from data_plane.executor import Control
from mediaplane.protocol.values import MediaType

MISBEHAVING = "tests.data_plane.decoders.misbehaving"
MUTATIONS = 2000
# Enough for any order of the tests: what takes longer has hung.
PATIENCE_SECONDS = 180.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutations", type=int, default=MUTATIONS, help="damaged files to decode")


@pytest.fixture
def mutations(pytestconfig: pytest.Config) -> int:
    """How many damaged files to decode."""
    return int(pytestconfig.getoption("--mutations", MUTATIONS))


@dataclass
class Bench:
    """A source, a place for what is made of it, and a pool that makes it."""

    pool: Pool
    folder: Path
    source: Path
    made: Path
    control: Control = field(default_factory=Control)

    def decode(self, behaviour: str, deadline_seconds: float = PATIENCE_SECONDS) -> Done | Failed:
        order = Order(MediaType.IMAGE, [Output(Product.PICTURE, 320)], extension=behaviour)
        source_fd = os.open(self.source, os.O_RDONLY)
        output_fd = os.open(self.made, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            return self.pool.decode(
                order, source_fd, [output_fd], deadline_seconds, self.control.check
            )
        finally:
            os.close(source_fd)
            os.close(output_fd)


BenchOf = Callable[..., Bench]


@pytest.fixture
def bench_of(tmp_path: Path) -> Iterator[BenchOf]:
    """Makes benches of misbehaving decoders, by how many there are and what they may take."""
    pools: list[Pool] = []

    def make(
        decoders: int = 1,
        memory_bytes: int = 256 << 20,
        recycle_items: int = 1000,
        recycle_bytes: int = 512 << 20,
        module: str = MISBEHAVING,
    ) -> Bench:
        settings = DecoderSettings(memory_bytes, recycle_items, recycle_bytes, module)
        pool = Pool(decoders, settings)
        pools.append(pool)
        source = tmp_path / "source"
        source.write_bytes(b"content")
        return Bench(pool, tmp_path, source, tmp_path / "made")

    yield make
    for pool in pools:
        with closing(pool):
            pass


@pytest.fixture
def bench(bench_of: BenchOf) -> Bench:
    return bench_of()
