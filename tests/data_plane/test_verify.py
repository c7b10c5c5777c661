"""A file is damaged when its content is another in the same state, and only then."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from data_plane.executor import Fail, ToHash
from data_plane.executors.verify import Known, Verdict, VerifyTask, verify
from mediaplane.protocol.values import HashAlgorithm
from tests.support.damage import flip
from tests.support.privileges import as_nobody, public_folder
from tests.support.scanning import context, put

CONTENT = b"what the camera wrote"


@pytest.fixture
def root() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


def known_file(root: Path, rel: bytes = b"file", *, has_error: bool = False) -> Known:
    """The file as it was scanned and hashed just now."""
    path = os.path.join(bytes(root), rel)
    info = os.lstat(path)
    with open(path, "rb") as file:
        digest = blake3(file.read()).digest()
    state = ToHash(1, bytes(root), rel, info.st_size, info.st_mtime_ns, HashAlgorithm.BLAKE3)
    return Known(state, digest, has_error)


def test_a_sound_file_is_worth_no_word(root: Path) -> None:
    put(root, b"file", CONTENT)
    ctx = context()
    assert verify(VerifyTask([known_file(root)]), ctx) == []
    assert (ctx.control.items, ctx.control.bytes) == (1, len(CONTENT))


def test_a_file_of_other_content_in_the_same_state_is_damaged(root: Path) -> None:
    put(root, b"file", CONTENT)
    known = known_file(root)
    flip(root / "file")
    (verdict,) = verify(VerifyTask([known]), context())
    assert (verdict.known, verdict.code) == (known, "bit_rot")
    assert "Restore it from a backup" in str(verdict.message)


def test_a_file_that_is_sound_again_loses_its_error(root: Path) -> None:
    put(root, b"file", CONTENT)
    known = known_file(root, has_error=True)
    assert verify(VerifyTask([known]), context()) == [Verdict(known)]


@pytest.mark.parametrize("change", ["touch", "grow", "remove"])
def test_a_file_that_is_not_as_it_was_scanned_is_left_to_the_next_scan(
    root: Path, change: str
) -> None:
    put(root, b"file", CONTENT)
    known, path = known_file(root), root / "file"
    match change:
        case "touch":
            os.utime(path, ns=(1, 1))
        case "grow":
            path.write_bytes(CONTENT * 2)
        case "remove":
            path.unlink()
    ctx = context()
    assert verify(VerifyTask([known]), ctx) == []
    assert ctx.control.items == 0


def test_a_file_that_may_not_be_read_is_unreadable_and_not_damaged(root: Path) -> None:
    put(root, b"file", CONTENT)
    known = known_file(root)
    (root / "file").chmod(0)
    (verdict,) = as_nobody(lambda: verify(VerifyTask([known]), context()))
    assert verdict.code == "permission_denied"


def test_a_library_whose_folder_is_gone_is_not_verified(root: Path) -> None:
    put(root, b"file", CONTENT)
    known = known_file(root)
    away = known._replace(file=known.file._replace(root=bytes(root / "unmounted")))
    with pytest.raises(Fail, match="1 files were not verified") as caught:
        verify(VerifyTask([away]), context())
    assert caught.value.code == "root_unavailable"
