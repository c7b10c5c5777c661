"""Files that a scan packs into one value come out of it as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediaplane.protocol import packs

NUMBERS = st.integers(-(2**63), 2**63 - 1)
PATHS = st.binary(max_size=40).filter(lambda path: b"\0" not in path)
FILES = st.tuples(
    PATHS, st.sampled_from([None, "image", "video"]), NUMBERS, NUMBERS, NUMBERS, NUMBERS
)
ONE = packs.pack([b"a"], ["image"], [1], [2], [3], [4])


@given(st.lists(FILES, min_size=1, max_size=20))
def test_what_is_packed_is_unpacked_as_it_was(files: list[packs.Packed]) -> None:
    assert packs.unpack(packs.pack(*zip(*files, strict=True))) == files


def test_a_pack_is_the_same_on_every_machine() -> None:
    numbers = b"".join(number.to_bytes(8, "little") for number in (1, 1, 2, 3, 4))
    assert numbers + b"\1a" == ONE


@pytest.mark.parametrize(
    "broken",
    [b"", b"\0", packs.pack([], [], [], [], [], []), ONE[:-2], ONE + b"\0b",
     (-1).to_bytes(8, "little", signed=True),
     (2**62).to_bytes(8, "little"), ONE[:40] + b"\3a"],
)  # fmt: skip
def test_a_pack_that_is_not_whole_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"batch of files|zip|multiple"):
        packs.unpack(broken)
