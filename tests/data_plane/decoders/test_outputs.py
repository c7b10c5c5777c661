"""What is made appears in the cache whole, or not at all."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data_plane.cache import thumbnail_path
from data_plane.decoders.messages import Done, Failed, Order, Output, Product
from data_plane.decoders.outputs import publish, scratch_outputs
from data_plane.executor import Cancelled, Context
from data_plane.jail import Jail
from data_plane.scratch import Scratch
from mediaplane.protocol.values import MediaType, ThumbnailFormat
from tests.data_plane.decoders.conftest import PATIENCE_SECONDS, Bench
from tests.support.waiting import eventually

PLACE = thumbnail_path(1234, ThumbnailFormat.JPEG)


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    scratch = Scratch(tmp_path / "state" / "scratch", "worker")
    yield scratch
    scratch.close()


@pytest.fixture
def ctx(bench: Bench, scratch: Scratch, tmp_path: Path) -> Context:
    state = bytes(tmp_path / "state")
    return Context(bench.control, Jail, scratch_file=scratch.file, state=state)


def thumbnail(bench: Bench, ctx: Context, behaviour: str) -> Done | Failed:
    """Make one as an executor does, and publish it when it could be made."""
    order = Order(MediaType.IMAGE, [Output(Product.PICTURE, 320)], extension=behaviour)
    with bench.source.open("rb") as source, scratch_outputs(ctx, 1) as files:
        reply = bench.pool.decode(
            order,
            source.fileno(),
            [file.fileno() for file in files],
            PATIENCE_SECONDS,
            ctx.control.check,
        )
        if isinstance(reply, Done):
            publish(files[0], ctx, PLACE)
    return reply


def test_a_published_file_takes_the_place_of_an_older_one(
    bench: Bench, ctx: Context, scratch: Scratch, tmp_path: Path
) -> None:
    for content in (b"first", b"second"):
        bench.source.write_bytes(content)
        assert isinstance(thumbnail(bench, ctx, "copy"), Done)
        assert (tmp_path / "state" / PLACE).read_bytes() == content
    assert os.stat(tmp_path / "state" / PLACE).st_nlink == 1
    assert list(scratch.folder.iterdir()) == []


def test_an_order_that_fails_leaves_no_file(
    bench: Bench, ctx: Context, scratch: Scratch, tmp_path: Path
) -> None:
    assert isinstance(thumbnail(bench, ctx, "crash"), Failed)
    assert list(scratch.folder.iterdir()) == []
    assert not (tmp_path / "state" / PLACE).exists()


def test_an_order_that_is_cancelled_leaves_no_file(
    bench: Bench, ctx: Context, scratch: Scratch, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(thumbnail, bench, ctx, "hang")
        eventually(lambda: [one for one in scratch.folder.iterdir() if one.stat().st_size])
        ctx.control.cancelled.set()
        with pytest.raises(Cancelled):
            reply.result()
    assert list(scratch.folder.iterdir()) == []
    assert not (tmp_path / "state" / PLACE).exists()


def test_a_file_that_cannot_be_published_leaves_no_second_name(
    ctx: Context, scratch: Scratch, tmp_path: Path
) -> None:
    (tmp_path / "state" / PLACE / "in the way").mkdir(parents=True)
    with scratch_outputs(ctx, 1) as files:
        with pytest.raises(IsADirectoryError):
            publish(files[0], ctx, PLACE)
        assert len(list(scratch.folder.iterdir())) == 1
    assert list(scratch.folder.iterdir()) == []
