"""Files are cut into shards: each file once, not too many at a time, copies together."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.policy import shards
from control_plane.policy.shards import File, Room, Shard, one_by_one
from mediaplane.protocol.kinds import ANY_BYTES

SHARD_BYTES = 20


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", SHARD_BYTES)


def inside(shard: Shard, files: list[File]) -> list[File]:
    return [
        (file_id, size)
        for file_id, size in files
        if shard.first_id <= file_id <= shard.last_id
        and shard.smallest_bytes <= size <= shard.largest_bytes
    ]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12))), st.integers(1, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shards_by_id_hold_every_file_once_in_order_and_within_the_limits(
    gaps: list[tuple[int, int]], most_files: int
) -> None:
    files, file_id = [], 0
    for gap, size in gaps:
        file_id += gap
        files.append((file_id, size))
    held = []
    cut = list(shards.by_id(one_by_one(files), room=Room(most_files)))
    for number, shard in enumerate(cut):
        there = inside(shard, files)
        assert (there[0][0], there[-1][0]) == (shard.first_id, shard.last_id)
        assert shard[2:] == (0, ANY_BYTES, len(there), sum(size for _id, size in there))
        assert shard.files <= most_files
        assert shard.size_bytes - there[-1][1] < SHARD_BYTES  # only its last file takes it over
        is_full = shard.files == most_files or shard.size_bytes >= SHARD_BYTES
        assert is_full or number == len(cut) - 1
        held += there
    assert held == files


@given(st.lists(st.integers(1, 12)), st.integers(1, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shards_by_size_hold_every_file_once_and_split_no_size_that_fits(
    sizes: list[int], most_files: int
) -> None:
    files = [(file_id, size) for file_id, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SHARD_FILES", most_files)
        cut = list(shards.by_size(sorted(files, key=lambda file: (file[1], file[0]))))
    held = []
    for shard in cut:
        there = inside(shard, files)
        assert shard[4:] == (len(there), sum(size for _id, size in there))
        held += there
        for size in {size for _id, size in there}:
            alike = [file for file in files if file[1] == size]
            if len(alike) <= most_files and size * len(alike) <= SHARD_BYTES:
                assert set(alike) <= set(there)
            else:
                assert (shard.smallest_bytes, shard.largest_bytes) == (size, size)
                assert shard.files <= most_files
    assert sorted(held) == files


def test_the_shards_of_a_small_library_are_many_and_those_of_a_large_one_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", ANY_BYTES)
    small, large = (
        [shard.files for shard in shards.by_id(one_by_one((n, 1) for n in range(total)))]
        for total in (40_000, 200_000)
    )
    assert small == [6000, 7500, 9375, 11_718, 5407]
    assert max(large) == 16_000
    assert large[-5:-1] == [16_000] * 4
    assert sum(large) == 200_000


def test_of_very_many_large_files_the_shards_are_some_thousands() -> None:
    for alike in (1, 2):
        sizes = [SHARD_BYTES + number // alike for number in range(100_000)]
        cut = list(shards.by_size(enumerate(sizes)))
        assert sum(shard.files for shard in cut) == len(sizes)
        assert len(cut) < 10_000
