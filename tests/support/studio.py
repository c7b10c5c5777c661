"""A real worker with decoders, and pictures and videos for it."""

import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image
from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from data_plane.settings import DataSettings
from data_plane.worker import Worker
from mediaplane.locations import Locations
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import assets, library_files, thumbnails, video_frames
from tests.support.planes import LIBRARY, Desk
from tests.support.rows import Rows
from tests.support.waiting import eventually

WAIT_SECONDS = 60


class Studio:
    """What is made of a library's pictures and videos, as the database and the cache have it."""

    def __init__(self, desk: Desk, data: Database, state: Path) -> None:
        self.desk = desk
        self.data = data
        self.state = state

    @contextmanager
    def worker(self, **settings: Any) -> Iterator[Worker]:
        """A worker as its process runs it, in a hurry."""
        usual = {"slots": 1, "priority_slots": 0, "image_slots": 1, "poll_seconds": 0.02,
                 "progress_seconds": 0.05, "stop_grace_seconds": 2.0}  # fmt: skip
        locations = Locations(self.state, "", "", "")
        locations.prepare()
        worker = Worker(self.data, DataSettings(**(usual | settings)), locations, threading.Event())
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()

    def asset(self, path: bytes) -> RowMapping:
        query = select(assets).where(assets.c.rel_path == path, assets.c.library_id == LIBRARY)
        with self.desk.database.read() as conn:
            return conn.execute(query).mappings().one()

    def wait_for(self, path: bytes, *statuses: str) -> RowMapping:
        eventually(lambda: self.asset(path)["status"] in statuses, WAIT_SECONDS)
        return self.asset(path)

    def frames(self, asset_id: int) -> list[tuple[int, bool]]:
        columns = select(video_frames.c.timestamp_ms, video_frames.c.is_keyframe)
        query = columns.where(video_frames.c.asset_id == asset_id)
        with self.desk.database.read() as conn:
            return [tuple(row) for row in conn.execute(query.order_by(video_frames.c.timestamp_ms))]

    def add_thumbnail(self, path: bytes, **columns: Any) -> int:
        """Request a thumbnail of a file, behind the back of the policy."""
        query = select(library_files).where(library_files.c.rel_path == path)
        with self.desk.database.write() as conn:
            file = conn.execute(query).mappings().one()
            version = f"{file['size_bytes']:x}-{file['mtime_ns']:x}"
            usual = {"file_id": file["id"], "file_version": version,
                     "media_type": file["media_type"], "group_key": "shown"}  # fmt: skip
            return int(Rows(conn).add("thumbnails", **(usual | columns)))

    def thumbnail(self, row_id: int) -> RowMapping | None:
        query = select(thumbnails).where(thumbnails.c.id == row_id)
        with self.desk.database.read() as conn:
            return conn.execute(query).mappings().first()

    def wait_for_thumbnail(self, row_id: int, *statuses: str) -> RowMapping:
        seen: list[RowMapping] = []

        def is_there() -> bool:
            row = self.thumbnail(row_id)
            if row is not None and row["status"] in statuses:
                seen.append(row)
            return bool(seen)

        eventually(is_there, WAIT_SECONDS)
        return seen[-1]

    def cached(self) -> set[str]:
        """The files of the cache, by their paths in it."""
        cache = self.state / "cache"
        return {str(file.relative_to(cache)) for file in cache.rglob("*") if file.is_file()}

    def scratch(self) -> list[Path]:
        """The files of work under way."""
        return list((self.state / "scratch").rglob("*.part"))


def hold_decoder() -> None:
    """Stop the decoder that is started next, so that what it does cannot end by itself."""
    os.kill(eventually(_decoder_pid, WAIT_SECONDS), signal.SIGSTOP)


def _decoder_pid() -> int:
    """The process of a decoder that this one has started; 0 when there is none."""
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            for pid in children.read_text().split():
                if b"data_plane.decoders" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
    return 0


def photo(width: int = 640, height: int = 480, seed: int = 1) -> bytes:
    """A JPEG with something to see on it."""
    rough = np.random.default_rng(seed).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    output = io.BytesIO()
    Image.fromarray(rough).resize((width, height)).save(output, "jpeg")
    return output.getvalue()


def film(path: Path, frames: int = 100, gop: int = 25) -> None:
    """A video of 25 frames a second, each of another brightness."""
    with av.open(os.fspath(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        stream.codec_context.gop_size = gop
        # Keyframes where they are asked for, and nowhere else.
        stream.options = {"preset": "ultrafast", "sc_threshold": "0"}
        for number in range(frames):
            pixels = np.full((240, 320, 3), 40 + number * 150 // frames, np.uint8)
            pixels[:, number % 320 :] //= 2
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
