"""Brings the colours of HDR video to those that every screen shows."""

import numpy as np
import pyvips
from av import VideoFrame
from av.video.reformatter import ColorTrc
from numpy.typing import NDArray

# What white is in HDR video, in candela per square metre, and where light is cut off.
_WHITE_NITS, _PEAK_NITS = 203.0, 1000.0
# Below this part of white, light is passed on as it is; what is above is pressed together.
_KNEE = 0.6
_STEPS = 1 << 12

# From the primaries of BT.2020 to those of sRGB, for linear light.
_TO_SRGB = (
    (1.6605, -0.5876, -0.0728),
    (-0.1246, 1.1329, -0.0083),
    (-0.0182, -0.1006, 1.1187),
)


def is_hdr(frame: VideoFrame) -> bool:
    """Tell whether a frame has the wide range of light of PQ or HLG."""
    return frame.color_trc in (ColorTrc.SMPTE2084, ColorTrc.ARIB_STD_B67)


def map_tones(image: pyvips.Image, frame: VideoFrame) -> pyvips.Image:
    """Return a picture of 16 bits, with the colours of a frame in HDR, as sRGB of 8 bits."""
    signal = np.linspace(0, 1, 1 << 16)
    to_nits = _pq_to_nits if frame.color_trc == ColorTrc.SMPTE2084 else _hlg_to_nits
    light = image.maplut(_table(np.minimum(to_nits(signal) / _PEAK_NITS, 1).astype(np.float32)))
    narrow = light.recomb(pyvips.Image.new_from_list([list(row) for row in _TO_SRGB]))
    # Square roots spend the steps of the table where eyes see them.
    steps = ((narrow > 0).ifthenelse(narrow, 0) ** 0.5 * (_STEPS - 1)).cast("ushort")
    shown = _encode_srgb(np.linspace(0, 1, _STEPS) ** 2 * _PEAK_NITS / _WHITE_NITS)
    return steps.maplut(_table(shown)).copy(interpretation="srgb")


def _table(values: NDArray[np.generic]) -> pyvips.Image:
    return pyvips.Image.new_from_array(values[np.newaxis, :])


def _pq_to_nits(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    root = signal ** (1 / 78.84375)
    light = np.maximum(root - 0.8359375, 0) / (18.8515625 - 18.6875 * root)
    return np.asarray(10_000 * light ** (1 / 0.1593017578125))


def _hlg_to_nits(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    scene = np.where(
        signal <= 0.5, signal**2 / 3, (np.exp((signal - 0.55991073) / 0.17883277) + 0.28466892) / 12
    )
    return np.asarray(_PEAK_NITS * scene**1.2)


def _encode_srgb(light: NDArray[np.float64]) -> NDArray[np.uint8]:
    room, excess = 1 - _KNEE, np.maximum(light - _KNEE, 0)
    shown = np.where(light <= _KNEE, light, _KNEE + room * excess / (excess + room))
    shown = shown / (_KNEE + room * _limit(_PEAK_NITS / _WHITE_NITS, room))
    shown = np.minimum(shown, 1)
    encoded = np.where(shown <= 0.0031308, 12.92 * shown, 1.055 * shown ** (1 / 2.4) - 0.055)
    return np.asarray(np.round(encoded * 255), dtype=np.uint8)


def _limit(peak: float, room: float) -> float:
    return (peak - _KNEE) / (peak - _KNEE + room)
