"""Makes one thumbnail, in the size and format that somebody asked for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from data_plane.cache import AssetFile, asset_path, thumbnail_path
from data_plane.decoders.messages import Made, Order, Output, Product
from data_plane.decoders.outputs import publish, scratch_outputs
from data_plane.executor import Context, Fail
from data_plane.executors.extract import (
    PROXY_PX,
    Original,
    check_unchanged,
    decode,
    open_original,
)
from data_plane.jail import Jail
from mediaplane.protocol.values import MediaType, ThumbnailFormat


@dataclass(frozen=True)
class ThumbnailTask:
    """Make a thumbnail."""

    thumbnail_id: int
    original: Original
    # The state of the file that was asked for.
    version: str
    size_px: int
    format: ThumbnailFormat
    # The asset of the same state, when it is processed: its proxy spares reading a video.
    asset_id: int | None = None
    is_asset_degraded: bool = False


class Thumbnail(NamedTuple):
    """A thumbnail in the cache."""

    picture: Made
    # Part of the file could not be decoded.
    is_degraded: bool


def make_thumbnail(task: ThumbnailTask, ctx: Context) -> Thumbnail:
    """Make a thumbnail and put it into the cache."""
    if task.original.version != task.version:
        raise Fail("changed", "The file has changed since; request the thumbnail again.")
    output = Output(Product.PICTURE, task.size_px, task.format)
    with _source(task, ctx) as (source, media_type), scratch_outputs(ctx, 1) as (file,):
        order = Order(media_type, [output], ctx.limits, task.original.extension)
        done = decode(order, source, [file.fileno()], ctx)
        # Afterwards: of a video only a small part is read for one picture.
        ctx.spend(done.bytes_read)
        is_of_original = media_type is task.original.media_type
        if is_of_original:
            check_unchanged(task.original, source)
        ctx.control.check()
        publish(file, ctx, thumbnail_path(task.thumbnail_id, task.format))
    return Thumbnail(done.made[0], done.is_degraded if is_of_original else task.is_asset_degraded)


@contextmanager
def _source(task: ThumbnailTask, ctx: Context) -> Iterator[tuple[int, MediaType]]:
    """Yield what the thumbnail is made of: the proxy of a video when it will do, or the file."""
    proxy = _open_proxy(task, ctx)
    if proxy is None:
        with open_original(task.original, ctx) as source:
            yield source, task.original.media_type
        return
    try:
        yield proxy, MediaType.IMAGE
    finally:
        os.close(proxy)


def _open_proxy(task: ThumbnailTask, ctx: Context) -> int | None:
    # Of pictures the proxy has lost transparency and some quality, and they are read fast.
    is_fit = task.original.media_type is MediaType.VIDEO and task.size_px <= PROXY_PX
    if task.asset_id is None or not is_fit:
        return None
    path = asset_path(task.asset_id, AssetFile.PROXY, task.version)
    try:
        with Jail(ctx.state) as jail:
            return jail.open_file(os.fsencode(path))
    except OSError:
        return None  # made by another worker, or swept
