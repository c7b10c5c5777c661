"""A source is fetched once, whatever is done with it."""

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from blake3 import blake3

from data_plane.decoders import clusters, sources
from data_plane.decoders.messages import Output, Product
from data_plane.decoders.sources import Source
from mediaplane.protocol.values import HashAlgorithm
from tests.support.videos import FRAMES, expected_frames, make, write_video


def test_a_source_larger_than_what_is_kept_is_hashed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_WHOLE_BLOCK_BYTES", 10)
    monkeypatch.setattr(sources, "_KEPT_BYTES", 40)
    path = tmp_path / "source"
    path.write_bytes(content := bytes(range(250)))
    with path.open("rb") as file, TemporaryFile() as spool:
        source = Source(file.fileno(), HashAlgorithm.SHA256, spool.fileno())
        source.seek(-5, os.SEEK_END)
        assert source.read(100) == content[-5:]
        source.seek(0)
        read = b"".join(iter(lambda: source.read(7), b""))

        assert read == content
        assert source.finish() == hashlib.sha256(content).digest()
        assert source.bytes_read == len(content)


@pytest.mark.parametrize("algorithm", [None, HashAlgorithm.BLAKE3])
@pytest.mark.parametrize("kept_bytes", [8 << 10, 1 << 20], ids=["little_memory", "enough_memory"])
def test_a_duration_that_is_missing_is_measured_without_a_second_fetch(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    algorithm: HashAlgorithm | None,
    kept_bytes: int,
) -> None:
    monkeypatch.setattr(sources, "_PART_BLOCK_BYTES", 1024)
    monkeypatch.setattr(sources, "_WHOLE_BLOCK_BYTES", 1024)
    monkeypatch.setattr(sources, "_KEPT_BYTES", kept_bytes)
    path = write_video(tmp_path / "live.mkv", container={"live": "1"})
    content = path.read_bytes()

    result = make(path, FRAMES, Output(Product.PICTURE, 320), sampling_limit=10,
                  hash_algorithm=algorithm)  # fmt: skip

    assert 16 << 10 < len(content) < 1 << 20
    assert result.done.duration_ms == 4000
    assert result.done.frames == expected_frames(path, 10, 4000)
    assert result.done.bytes_read == len(content)
    assert result.done.digest == (blake3(content).digest() if algorithm else None)
    # The first file was the spool: nothing of that is left in it.
    assert list(result.frame_files()) == result.timestamps_ms
    assert len(result.files[0]) == result.done.made[0].bytes_size < 2 * len(content)


@pytest.mark.parametrize("algorithm", [None, HashAlgorithm.BLAKE3])
def test_the_last_clusters_tell_the_duration_of_a_video_that_is_too_large_for_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: HashAlgorithm | None
) -> None:
    monkeypatch.setattr(sources, "_PART_BLOCK_BYTES", 1024)
    monkeypatch.setattr(sources, "_WHOLE_BLOCK_BYTES", 1024)
    monkeypatch.setattr(sources, "_KEPT_BYTES", 256 << 10)
    monkeypatch.setattr(clusters, "_HEAD_BYTES", 16 << 10)
    monkeypatch.setattr(clusters, "_TAIL_BYTES", 64 << 10)
    monkeypatch.setattr(os, "pwrite", lambda *_written: 0)
    path = write_video(
        tmp_path / "live.mkv",
        "rawvideo",
        container={"live": "1", "cluster_time_limit": "200"},
    )

    result = make(path, sampling_limit=10, hash_algorithm=algorithm)

    size = path.stat().st_size
    assert size > 1 << 20
    assert result.done.duration_ms == 4000
    assert result.done.frames == expected_frames(path, 10, 4000)
    assert result.done.bytes_read == size


def test_a_source_that_cannot_be_spooled_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_PART_BLOCK_BYTES", 1024)
    monkeypatch.setattr(sources, "_KEPT_BYTES", 8 << 10)
    path = tmp_path / "source"
    path.write_bytes(os.urandom(size := 50_000))
    with path.open("rb") as file, open("/dev/full", "r+b", buffering=0) as full:
        source = Source(file.fileno(), None, full.fileno())
        with source.spooling():
            first = b"".join(iter(lambda: source.read(500), b""))
        source.seek(0)
        assert b"".join(iter(lambda: source.read(500), b"")) == first == path.read_bytes()
        assert size < source.bytes_read <= 2 * size
