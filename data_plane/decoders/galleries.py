"""Makes the files of a video from its frames, of which few are held as pictures at a time."""

import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace

import pyvips

from data_plane.decoders.encoding import encode, fit, scale_down, write_picture
from data_plane.decoders.messages import Frame, Made, Output, Product
from data_plane.decoders.posters import Posters
from data_plane.decoders.sprites import join_tiles, write_index
from data_plane.decoders.stills import Still
from mediaplane.protocol.values import ThumbnailFormat


class Gallery:
    """Pictures of one video's frames, each as small as the file that it is for."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self.posters = Posters()
        self.frames: list[Frame] = []
        self._outputs = outputs
        # By the size of the pictures.
        self._jpegs: dict[int, list[bytes]] = {
            one.size_px: [] for one in outputs if one.product is Product.FRAMES
        }
        self._tiles: dict[int, list[pyvips.Image]] = {
            one.size_px: []
            for one in outputs
            if one.product in (Product.SPRITE, Product.SPRITE_INDEX)
        }

    def add(self, still: Still) -> None:
        """Take the picture of the next frame."""
        self.frames.append(still.frame)
        self.posters.add(still)
        for size_px, jpegs in self._jpegs.items():
            jpegs.append(encode(fit(still.image, size_px), ThumbnailFormat.JPEG))
        for size_px, tiles in self._tiles.items():
            tiles.append(scale_down(still.image, size_px))

    def write(
        self, poster: Still, start_ms: int, duration_ms: int, fds: Sequence[int]
    ) -> list[Made]:
        """Write all files, of a video that begins and lasts as given."""
        made = []
        for output, fd in zip(self._outputs, fds, strict=True):
            match output.product:
                case Product.PICTURE:
                    made.append(write_picture(poster.image, output, fd))
                case Product.FRAMES:
                    made.append(self._write_archive(output, poster, fd))
                case Product.SPRITE:
                    sprite = join_tiles(self._tiles[output.size_px])
                    unscaled = replace(output, size_px=max(sprite.width, sprite.height))
                    made.append(write_picture(sprite, unscaled, fd))
                case Product.SPRITE_INDEX:
                    made.append(self._write_index(output, start_ms, duration_ms, fd))
        return made

    def _write_archive(self, output: Output, poster: Still, fd: int) -> Made:
        jpegs = zip(self.frames, self._jpegs[output.size_px], strict=True)
        with os.fdopen(os.dup(fd), "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for frame, jpeg in jpegs:
                # Dated by itself, so that the same frames always are the same bytes.
                archive.writestr(zipfile.ZipInfo(f"{frame.timestamp_ms}.jpg"), jpeg)
        size = fit(poster.image, output.size_px)
        return Made(size.width, size.height, os.fstat(fd).st_size)

    def _write_index(self, output: Output, start_ms: int, duration_ms: int, fd: int) -> Made:
        tile = self._tiles[output.size_px][0]
        starts_ms = [frame.timestamp_ms - start_ms for frame in self.frames]
        index = write_index(starts_ms, duration_ms, tile.width, tile.height)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(index)
        return Made(tile.width, tile.height, len(index))
