"""Finds the frame that stands for a whole video."""

import numpy as np

from data_plane.decoders.stills import Still
from data_plane.decoders.windows import MINIATURE_PX

# Black, white, or a fade in between: the values of such a picture hardly differ.
_FLAT_DEVIATION = 8.0
# How many pictures are held at most while the mean of all is not known yet.
_MAX_HELD = 12


class Posters:
    """Frames of a video of which one becomes its poster: the most typical that is not flat."""

    def __init__(self) -> None:
        self._sum = np.zeros((MINIATURE_PX, MINIATURE_PX, 3))
        self._count = 0
        self._held: list[Still] = []
        self._first: Still | None = None

    @property
    def has_typical(self) -> bool:
        """Whether there is a frame that is not flat."""
        return bool(self._held)

    def add(self, still: Still) -> None:
        """Take a frame."""
        self._first = self._first or still
        if still.miniature.std(axis=(0, 1)).max() < _FLAT_DEVIATION:
            return
        self._sum += still.miniature
        self._count += 1
        self._held.append(still)
        if len(self._held) > _MAX_HELD:
            self._held.remove(max(self._held, key=self._distance))

    def choose(self) -> Still | None:
        """Return the poster; the first frame if all are flat, and nothing if there was none."""
        return min(self._held, key=self._distance) if self._held else self._first

    def _distance(self, still: Still) -> float:
        return float(np.mean((still.miniature - self._sum / self._count) ** 2))
