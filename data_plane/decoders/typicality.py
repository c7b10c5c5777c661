"""Tells which pictures are most like the mean of many."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data_plane.decoders.messages import FrameMeasure
from data_plane.decoders.windows import Miniature

# Constants of SSIM as its authors chose them, for values up to 255.
_SSIM_MEAN, _SSIM_SPREAD = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def sort_by_likeness(
    miniatures: Sequence[Miniature], mean: NDArray[np.float64], measure: FrameMeasure
) -> list[int]:
    """Return the positions of pictures, those most like a mean first."""
    # One by one: all of them as floating point numbers would take eight times their memory.
    if measure is FrameMeasure.SSIM:
        distances = [-_structural_similarity(one.astype(np.float64), mean) for one in miniatures]
    else:
        distances = [float(np.mean((one - mean) ** 2)) for one in miniatures]
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
