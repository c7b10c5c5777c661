"""Cuts a video into windows of time, and tells which keyframe is the most typical of its window."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data_plane.decoders.messages import FrameMeasure

MINIATURE_PX = 32
# A picture of 32 x 32 pixels and three colours.
Miniature = NDArray[np.uint8]

# Constants of SSIM as its authors chose them, for values up to 255.
_SSIM_MEAN, _SSIM_SPREAD = (0.01 * 255) ** 2, (0.03 * 255) ** 2


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


def sort_by_typicality(
    miniatures: Sequence[Miniature], measure: FrameMeasure = FrameMeasure.MSE
) -> list[int]:
    """Return the positions of pictures, those most like the mean of all first."""
    pictures = np.stack(miniatures).astype(np.float64)
    mean = pictures.mean(axis=0)
    if measure is FrameMeasure.SSIM:
        distances = [-_structural_similarity(picture, mean) for picture in pictures]
    else:
        distances = [float(np.mean((picture - mean) ** 2)) for picture in pictures]
    return sorted(range(len(distances)), key=distances.__getitem__)


def _structural_similarity(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the mean SSIM over blocks of 8 x 8 pixels, colour by colour."""
    left, right = _in_blocks(one), _in_blocks(other)
    left_mean, right_mean = left.mean(axis=0), right.mean(axis=0)
    covariance = ((left - left_mean) * (right - right_mean)).mean(axis=0)
    likeness = (2 * left_mean * right_mean + _SSIM_MEAN) * (2 * covariance + _SSIM_SPREAD)
    scale = (left_mean**2 + right_mean**2 + _SSIM_MEAN) * (
        left.var(axis=0) + right.var(axis=0) + _SSIM_SPREAD
    )
    return float(np.mean(likeness / scale))


def _in_blocks(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    return picture.reshape(4, 8, 4, 8, 3).transpose(1, 3, 0, 2, 4).reshape(64, -1)
