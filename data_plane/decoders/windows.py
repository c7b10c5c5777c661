"""Cuts a video into windows of time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MINIATURE_PX = 32
# A picture of 32 x 32 pixels and three colours.
Miniature = NDArray[np.uint8]


@dataclass(frozen=True)
class Windows:
    """Equal parts of a video; times are whole units of the stream's time base, so exact."""

    start: int
    duration: int
    count: int

    def index_of(self, time: int) -> int:
        """Return the window that a time is in; -1 before the first, and the last one at the end."""
        elapsed = time - self.start
        if elapsed < 0:
            return -1
        return min(elapsed * self.count // self.duration, self.count - 1)

    def centre_of(self, index: int) -> int:
        """Return the last time that is not behind the centre of a window."""
        return self.start + (2 * index + 1) * self.duration // (2 * self.count)
