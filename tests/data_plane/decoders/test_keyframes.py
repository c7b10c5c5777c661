"""A window of a video may have any number of keyframes."""

import tracemalloc
from pathlib import Path

import av
import numpy as np
import pytest

from data_plane.decoders import keyframes
from data_plane.decoders.groups import StreamDecoder
from data_plane.decoders.keyframes import Keyframes
from data_plane.decoders.messages import FrameMeasure
from data_plane.decoders.typicality import sort_by_likeness
from tests.support.videos import write_video

MINIATURES = np.random.default_rng(1).integers(0, 255, (2000, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("measure", FrameMeasure)
def test_the_picture_most_like_the_mean_is_the_first(measure: FrameMeasure) -> None:
    mean = MINIATURES[7].astype(np.float64)
    assert sort_by_likeness(list(MINIATURES), mean, measure)[0] == 7


@pytest.mark.parametrize("measure", FrameMeasure)
def test_pictures_are_compared_in_less_memory_than_they_take(measure: FrameMeasure) -> None:
    pictures, mean = list(MINIATURES), MINIATURES.mean(axis=0)
    tracemalloc.start()
    try:
        sort_by_likeness(pictures, mean, measure)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MINIATURES.nbytes / 4


@pytest.mark.parametrize(("kept", "kept_bytes"), [(8, 1 << 20), (1000, 1), (1000, 20_000)])
def test_the_keyframes_held_are_few_and_all_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, kept_bytes: int
) -> None:
    monkeypatch.setattr(keyframes, "_KEPT_KEYFRAMES", kept)
    monkeypatch.setattr(keyframes, "_KEPT_BYTES", kept_bytes)
    path = write_video(tmp_path / "a.avi", "mjpeg", frames=100, pix_fmt="yuvj420p")
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        held = Keyframes(StreamDecoder(stream, 1 << 20), FrameMeasure.MSE)
        for packet in container.demux(stream):
            if packet.size:
                held.add([packet])
            assert len(held._heads) == 1 or (
                len(held._heads) <= kept and sum(one.size for (one,) in held._heads) <= kept_bytes
            )
        assert len(held._heads) < 20
        held._see()
        assert held._seen == 100
        assert held.choose()
        assert held.choose() is None
