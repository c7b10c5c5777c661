"""Joins small pictures of a video into one, with an index of when and where each is shown."""

from collections.abc import Sequence

import pyvips

COLUMNS = 10


def join_tiles(tiles: Sequence[pyvips.Image]) -> pyvips.Image:
    """Return one picture of tiles, row by row; the first tells the size of all."""
    width, height = tiles[0].width, tiles[0].height
    # Few videos change their size on the way.
    fitted = [
        tile
        if (tile.width, tile.height) == (width, height)
        else tile.thumbnail_image(width, height=height).gravity("centre", width, height)
        for tile in tiles
    ]
    return pyvips.Image.arrayjoin(fitted, across=min(COLUMNS, len(fitted)))


def write_index(
    starts_ms: Sequence[int], duration_ms: int, tile_width: int, tile_height: int
) -> bytes:
    """Return WebVTT that shows each tile from its start on, the first one from the very beginning.

    Times count from the beginning of the video, as players do.
    """
    ends_ms = [*starts_ms[1:], max(duration_ms, starts_ms[-1] + 1)]
    begins_ms = [0, *starts_ms[1:]]
    lines = ["WEBVTT", ""]
    for index, (begin_ms, end_ms) in enumerate(zip(begins_ms, ends_ms, strict=True)):
        x, y = index % COLUMNS * tile_width, index // COLUMNS * tile_height
        lines += [
            f"{_clock(begin_ms)} --> {_clock(end_ms)}",
            f"sprite#xywh={x},{y},{tile_width},{tile_height}",
            "",
        ]
    return "\n".join(lines).encode()


def _clock(time_ms: int) -> str:
    seconds, milliseconds = divmod(time_ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}"
