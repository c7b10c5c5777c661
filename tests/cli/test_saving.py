"""What is written to a file, or not at all."""

from pathlib import Path

import pytest

from mediaplane.cli.saving import opened


def test_a_file_that_is_there_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"of yesterday")

    def fail() -> None:
        with opened(str(target)) as sink:
            sink.write(b"half of it")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        fail()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"of yesterday"]
    with opened(str(target)) as sink:
        sink.write(b"all of it")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"all of it"]


def test_the_name_of_an_open_file_stays_what_it_is(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("wb") as file,
        opened(f"/dev/fd/{file.fileno()}") as sink,
    ):
        sink.write(b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
