"""The summary of duplicate groups can be compared with the files, and repaired."""

from typing import Any

import pytest
from sqlalchemy import insert, text, update

from control_plane.policy import duplicates
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.tables import duplicate_groups
from mediaplane.v1 import duplicate_service_pb2 as pb
from tests.support.control import ControlPlane
from tests.support.files import (
    add_files,
    add_library,
    content,
    digest,
    expected_groups,
    summarise_all,
    summarised_groups,
)

GROUPS = 20


@pytest.fixture
def filled(control: ControlPlane) -> ControlPlane:
    with control.database.control.write() as conn:
        rows = [content(n, algorithm) for n in range(GROUPS // 2) for algorithm in
                ("blake3", "sha256")]  # fmt: skip
        add_files(conn, add_library(conn, "photos"), rows * 2)
        add_files(conn, "photos", [content(99), {}])
        summarise_all(conn)
    return control


def verify(control: ControlPlane, *, repair: bool = False) -> tuple[int, int, bool]:
    request = pb.VerifyDuplicateGroupsRequest(repair=repair)
    answer = control.duplicates.VerifyDuplicateGroups(request)
    return answer.groups, answer.wrong_groups, answer.is_repaired


def lose(control: ControlPlane, *numbers: int) -> None:
    with control.database.control.write() as conn:
        for number in numbers:
            statement = text("DELETE FROM duplicate_groups WHERE content_hash = :hash")
            assert conn.execute(statement, {"hash": digest(number)}).rowcount == 2


def invent(control: ControlPlane, *numbers: int) -> None:
    row: dict[str, Any] = {"file_count": 2, "size_bytes": 10, "total_size_bytes": 20}
    row |= {"reclaimable_bytes": 10}
    with control.database.control.write() as conn:
        for number in numbers:
            values = row | content(number)
            conn.execute(insert(duplicate_groups).values(**values, updated_at=now_ms()))


def falsify(control: ControlPlane, number: int, column: str) -> None:
    with control.database.control.write() as conn:
        group = duplicate_groups.c
        statement = update(duplicate_groups).where(
            group.content_hash == digest(number), group.hash_algorithm == "sha256"
        )
        changed = conn.execute(statement.values({column: group[column] + 1}))
        assert changed.rowcount == 1


def assert_repair_mends(control: ControlPlane, wrong_groups: int) -> None:
    assert verify(control) == (GROUPS, wrong_groups, False)
    assert verify(control) == (GROUPS, wrong_groups, False)
    assert verify(control, repair=True) == (GROUPS, wrong_groups, True)
    assert verify(control, repair=True) == (GROUPS, 0, False)
    with control.database.control.read() as conn:
        assert summarised_groups(conn) == expected_groups(conn)


def test_a_summary_that_is_right_is_said_to_be(filled: ControlPlane) -> None:
    assert verify(filled) == (GROUPS, 0, False)


def test_an_empty_database_has_nothing_wrong(control: ControlPlane) -> None:
    assert verify(control, repair=True) == (0, 0, False)


def test_groups_that_the_summary_lacks_are_found_and_written(filled: ControlPlane) -> None:
    lose(filled, 0, 5)
    assert_repair_mends(filled, 4)


def test_groups_without_two_files_are_found_and_removed(filled: ControlPlane) -> None:
    invent(filled, 99, 100, 101)
    assert_repair_mends(filled, 3)


@pytest.mark.parametrize(
    "column", ["file_count", "size_bytes", "total_size_bytes", "reclaimable_bytes"]
)
def test_a_wrong_figure_is_found_and_written_anew(filled: ControlPlane, column: str) -> None:
    falsify(filled, 3, column)
    assert_repair_mends(filled, 1)


@pytest.mark.parametrize("span_files", [0, 1, 2, 7, 1000])
def test_what_is_wrong_is_counted_once_however_the_hashes_are_cut(
    filled: ControlPlane, monkeypatch: pytest.MonkeyPatch, span_files: int
) -> None:
    monkeypatch.setattr(duplicates, "_SPAN_FILES", span_files)
    lose(filled, 1)
    invent(filled, 99, *range(200, 220))
    falsify(filled, 2, "file_count")
    assert_repair_mends(filled, 2 + 21 + 1)
