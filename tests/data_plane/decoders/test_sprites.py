"""The tiles of every video fit into one picture."""

from io import BytesIO

import pyvips
from PIL import Image

from control_plane.policy.libraries import MAX_SAMPLES
from data_plane.decoders.encoding import encode
from data_plane.decoders.sprites import join_tiles
from mediaplane.protocol.values import ThumbnailFormat


def test_as_many_tiles_as_a_library_allows_are_one_jpeg() -> None:
    tile = pyvips.Image.black(160, 160, bands=3).copy(interpretation="srgb").cast("uchar")
    sprite = encode(join_tiles([tile] * MAX_SAMPLES), ThumbnailFormat.JPEG)
    assert Image.open(BytesIO(sprite)).size == (1600, 16_000)
