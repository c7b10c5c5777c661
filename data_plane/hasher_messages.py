"""What a worker and the processes that hash for it tell each other."""

from typing import Any, NamedTuple

from sqlalchemy.engine import URL

from data_plane.settings import DataSettings


class Station(NamedTuple):
    """For whom a process works: what it may open, and how fast it may read."""

    database_url: URL
    settings: DataSettings


class Progress(NamedTuple):
    """How far a shard is."""

    items: int
    bytes: int


class Done(NamedTuple):
    """How far a shard came, and what came of it."""

    items: int
    bytes: int
    result: Any


class Unable(NamedTuple):
    """A shard that could not be done: whoever gave it away finds out why by doing it."""
