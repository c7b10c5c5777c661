"""Refuses pictures by what their header claims, before any pixel of them is decoded."""

from data_plane.decoders.messages import DecodeFailed, Failure, Limits

# Rows cost time even where they are a pixel wide; no camera comes near.
MAX_SIDE_PX = 200_000


def refuse_too_large(width: int, height: int, limits: Limits) -> None:
    """Raise DecodeFailed if a picture of this size is not to be decoded."""
    if width * height > limits.max_pixels:
        raise DecodeFailed(
            Failure.TOO_LARGE,
            f"It has {width} x {height} pixels and the limit is {limits.max_pixels} pixels: "
            "raise MEDIAPLANE_MAX_PIXELS, or scale the picture down.",
        )
    if max(width, height) > MAX_SIDE_PX:
        raise DecodeFailed(
            Failure.TOO_LARGE,
            f"It has {width} x {height} pixels and no side may have more than {MAX_SIDE_PX}: "
            "cut the picture, or scale it down.",
        )
