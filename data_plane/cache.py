"""Where derivatives lie below the state directory, and whose each of them is.

A row is there before its first file and its id is never given to another, so a file without a row
belongs to nothing. Writers finish a file in the scratch folder: what is in the cache is whole.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mediaplane.protocol.values import ThumbnailFormat

FOLDER = "cache"

_SHARDS = 1000
_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_MAX_ID = 2**63 - 1


class Owner(StrEnum):
    """The table whose rows own derivatives, which is also the name of their folder."""

    ASSETS = "assets"
    THUMBNAILS = "thumbnails"


class AssetFile(StrEnum):
    """What is made of an asset, by the first part of its file's name."""

    THUMBNAIL = "thumbnail"
    PROXY = "proxy"
    FRAMES = "frames"
    SPRITE = "sprite"
    SPRITE_INDEX = "sprite_index"


@dataclass(frozen=True)
class SweepTask:
    """Remove the derivatives whose row is gone."""

    # Of every library, in the trash or not: nothing at or below them is swept.
    roots: Sequence[bytes]
    # Which of these rows exist.
    known: Callable[[Owner, Collection[int]], set[int]]


def asset_path(asset_id: int, file: AssetFile, version: str) -> str:
    """Return where a derivative of an asset lies in the state directory.

    With the version of the source in its name, a late worker cannot replace the new by the old.
    """
    return f"{FOLDER}/{Owner.ASSETS}/{shard(asset_id)}/{asset_id}/{file}.{version}"


def is_asset_file(name: str) -> bool:
    """Tell whether a name in the folder of an asset is one of ours."""
    return name.partition(".")[0] in set(AssetFile)


def thumbnail_path(thumbnail_id: int, file_format: ThumbnailFormat) -> str:
    """Return where a thumbnail lies in the state directory."""
    name = f"{thumbnail_id}.{file_format}"
    return f"{FOLDER}/{Owner.THUMBNAILS}/{shard(thumbnail_id)}/{name}"


def shard(row_id: int) -> str:
    """Return the folder that the files of a row share with every thousandth other row."""
    return f"{row_id % _SHARDS:03d}"


def row_of(owner: Owner, folder: str, name: str) -> int | None:
    """Return the row to which a name in a shard's folder belongs, None when it is not ours."""
    stem, dot, ending = name.partition(".")
    is_ours = ending in set(ThumbnailFormat) if owner is Owner.THUMBNAILS else not dot
    if not is_ours or not _ID.fullmatch(stem):
        return None
    row_id = int(stem)
    return row_id if row_id <= _MAX_ID and shard(row_id) == folder else None
