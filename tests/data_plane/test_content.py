"""Originals are read as they were scanned, in ranges, and errors never tell where they lie."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from tests.support.control import refusal_of
from tests.support.data import DataPlane, asked, first, joined, serving_data
from tests.support.databases import Databases
from tests.support.waiting import eventually, must_not_block

CODE = grpc.StatusCode
BLOCK = 256 << 10
LARGE = 64 << 20
CONTENT = bytes(range(256)) * 2500 + b"end"
END = len(CONTENT)
RANGES = [
    (0, 1),
    (1, 1),
    (BLOCK - 1, 2),
    (BLOCK, BLOCK),
    (100, 0),
    (END - 1, 1),
    (END - 3, 1000),
    (END, 0),
    (END, 10),
    (0, 1 << 60),
    (3, (1 << 63) - 1),
]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    return folder


@pytest.fixture
def plane(database: Databases, tmp_path: Path) -> Iterator[DataPlane]:
    with serving_data(database, tmp_path) as serving:
        yield serving


def put(plane: DataPlane, library: Path, *names: bytes, content: bytes = CONTENT) -> list[str]:
    """Write files and make them known."""
    for name in names:
        with open(os.path.join(bytes(library), name), "wb") as file:
            file.write(content)
    return plane.record(library, *names)


def put_large(plane: DataPlane, library: Path) -> str:
    """A file that no buffer on the way can hold."""
    with (library / "large").open("wb") as file:
        file.truncate(LARGE)
    return plane.record(library, b"large")[0]


@pytest.mark.parametrize("name", [b"plain", b"\xff\xfe", b"a\nb", b"n" * 255])
def test_a_whole_file_is_read_whatever_its_name(
    plane: DataPlane, library: Path, name: bytes
) -> None:
    (file,) = put(plane, library, name)
    assert joined(plane.read(file)) == CONTENT


def test_a_range_is_that_part_of_the_file(plane: DataPlane, library: Path) -> None:
    (file,) = put(plane, library, b"file")
    for offset, length in RANGES:
        expected = CONTENT[offset : offset + length] if length else CONTENT[offset:]
        assert joined(plane.read(file, offset, length)) == expected


def test_the_first_message_describes_the_file_even_when_there_is_nothing_to_send(
    plane: DataPlane, library: Path
) -> None:
    (library / "empty").write_bytes(b"")
    (library / "file").write_bytes(b"1234")
    empty, file = plane.record(library, b"empty", b"file")
    (nothing,) = plane.read(empty)
    (at_end,) = plane.read(file, 4)
    (part,) = plane.read(file, 2)
    assert (nothing.size_bytes, nothing.data) == (0, b"")
    assert (at_end.size_bytes, at_end.data) == (4, b"")
    assert (part.size_bytes, part.data) == (4, b"34")
    assert at_end.version_id == part.version_id != nothing.version_id


def test_later_messages_bring_only_more_of_the_file(plane: DataPlane, library: Path) -> None:
    (file,) = put(plane, library, b"file")
    first_message, *more = plane.read(file)
    assert (first_message.size_bytes, bool(first_message.version_id)) == (len(CONTENT), True)
    assert {(message.size_bytes, message.version_id) for message in more} == {(0, "")}
    assert all(message.data for message in more)


def test_a_position_beyond_the_end_is_refused(plane: DataPlane, library: Path) -> None:
    (file,) = put(plane, library, b"file", content=b"1234")
    told = plane.refused(file, offset=5)
    assert (told.code, told.reason) == (CODE.OUT_OF_RANGE, "OUT_OF_RANGE")
    assert "4 bytes" in told.text


def test_a_negative_range_is_refused(plane: DataPlane, library: Path) -> None:
    (file,) = put(plane, library, b"file")
    assert plane.refused(file, -1, 0).code is CODE.INVALID_ARGUMENT
    assert plane.refused(file, 0, -1).code is CODE.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "name",
    ["", "file", "libraries/x", "libraries/x/files/", "libraries/x/files/0", "libraries/x/files/-1",
     "libraries/x/files/1/..", "libraries/../files/1", "libraries/x/files/1\n",
     "libraries/X/files/1", "libraries/x/files/9999999999999999999", "libraries/x/files/\u0661"],
)  # fmt: skip
def test_a_name_of_another_form_is_refused(plane: DataPlane, name: str) -> None:
    assert plane.refused(name).code is CODE.INVALID_ARGUMENT


def test_a_file_that_is_not_known_is_not_found(
    plane: DataPlane, library: Path, database: Databases
) -> None:
    (file,) = put(plane, library, b"file")
    (missing,) = plane.record(library, b"file", slug="other", is_missing=True)
    file_id = file.rpartition("/")[2]
    elsewhere = f"libraries/other/files/{file_id}"
    for unknown in (f"{file}0000", "libraries/nowhere/files/1", elsewhere, missing):
        assert plane.refused(unknown).code is CODE.NOT_FOUND
    assert joined(plane.read(file)) == CONTENT
    with database.control.write() as conn:
        conn.exec_driver_sql("UPDATE libraries SET deleted_at = 1")
    assert plane.refused(file).code is CODE.NOT_FOUND


def test_a_file_or_root_that_is_gone_is_not_found(plane: DataPlane, library: Path) -> None:
    (file,) = put(plane, library, b"file")
    (library / "file").unlink()
    assert plane.refused(file).code is CODE.NOT_FOUND
    library.rmdir()
    assert plane.refused(file).code is CODE.NOT_FOUND


def test_a_file_that_changed_since_the_scan_is_not_served(plane: DataPlane, library: Path) -> None:
    longer, touched = put(plane, library, b"longer", b"touched", content=b"1234")
    (library / "longer").write_bytes(b"12345")
    os.utime(library / "touched", ns=(1, 1))
    assert plane.refused(longer).code is CODE.FAILED_PRECONDITION
    assert plane.refused(touched).code is CODE.FAILED_PRECONDITION


@pytest.mark.parametrize(
    "replace",
    [lambda path, target: path.symlink_to(target), lambda path, _: os.mkfifo(path),
     lambda path, _: path.mkdir()],
    ids=["link", "pipe", "folder"],
)  # fmt: skip
def test_what_took_the_place_of_a_file_is_not_served(
    plane: DataPlane, library: Path, tmp_path: Path, replace: Callable[[Path, Path], object]
) -> None:
    (file,) = put(plane, library, b"file")
    (library / "file").rename(tmp_path / "moved")
    replace(library / "file", tmp_path / "moved")
    with must_not_block():
        assert plane.refused(file).code is CODE.FAILED_PRECONDITION


def test_a_folder_on_the_way_that_became_a_link_is_not_followed(
    plane: DataPlane, library: Path, tmp_path: Path
) -> None:
    (library / "folder").mkdir()
    (file,) = put(plane, library, b"folder/file")
    (library / "folder").rename(tmp_path / "moved")
    (library / "folder").symlink_to(tmp_path / "moved")
    assert plane.refused(file).code is CODE.FAILED_PRECONDITION


def test_a_file_outside_the_permitted_roots_is_not_served(
    database: Databases, library: Path, tmp_path: Path
) -> None:
    (tmp_path / "permitted").mkdir()
    with serving_data(database, tmp_path, roots=str(tmp_path / "permitted")) as plane:
        (file,) = put(plane, library, b"file")
        assert plane.refused(file).code is CODE.FAILED_PRECONDITION
    with serving_data(database, tmp_path, roots=f"/nowhere:{library}") as plane:
        assert joined(plane.read(file)) == CONTENT


def test_a_file_that_changes_while_it_is_read_ends_the_stream(
    plane: DataPlane, library: Path
) -> None:
    stream = plane.content.ReadOriginal(asked(put_large(plane, library)))
    first(stream)
    os.truncate(library / "large", LARGE - 1)
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert refusal_of(caught.value).reason == "ABORTED"


def test_streams_beyond_the_limit_are_refused_until_one_ends(
    database: Databases, library: Path, tmp_path: Path
) -> None:
    with serving_data(database, tmp_path, data_streams=3) as plane, ExitStack() as stack:
        file = put_large(plane, library)
        streams = [plane.content.ReadOriginal(asked(file)) for _ in range(3)]
        for stream in streams:
            stack.callback(stream.cancel)
            first(stream)
        for _ in range(5):
            assert plane.refused(file).code is CODE.RESOURCE_EXHAUSTED
        streams[0].cancel()

        def is_served() -> bool:
            try:
                return joined(plane.read(file, 0, 10)) == bytes(10)
            except grpc.RpcError:
                return False

        assert eventually(is_served)
