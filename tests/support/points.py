"""The points at which a process is killed: all of them, or those that fall to one database."""

import os
from collections.abc import Iterable, Iterator

# Otherwise each point is tried on one of the two databases.
IS_EVERY_POINT = os.environ.get("MEDIAPLANE_TEST_EVERY_POINT") == "1"


def share(points: Iterable[int], *, is_sqlite: bool) -> Iterator[int]:
    """Yield the points for a database, two by two: a beginning and its end stay together."""
    for number, point in enumerate(points):
        if IS_EVERY_POINT or (number // 2 % 2 == 0) == is_sqlite:
            yield point
