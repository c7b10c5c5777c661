"""Pages of duplicate groups and of the files in one: the protocol's order and cursors."""

import base64
import json
from typing import Any

import pytest
from grpc import StatusCode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from mediaplane.v1 import duplicate_service_pb2 as pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from tests.support.control import ControlPlane, refusal
from tests.support.files import (
    Group,
    add_files,
    add_library,
    content,
    digest,
    expected_groups,
    summarise_all,
)

ALGORITHMS = {
    libraries_pb.HASH_ALGORITHM_BLAKE3: "blake3",
    libraries_pb.HASH_ALGORITHM_SHA256: "sha256",
}


def fill(control: ControlPlane, *rows: dict[str, Any]) -> list[int]:
    """Put files into one library and count their groups; return the files' ids."""
    with control.database.control.write() as conn:
        conn.execute(text("DELETE FROM duplicate_groups"))
        conn.execute(text("DELETE FROM library_files"))
        conn.execute(text("DELETE FROM libraries"))
        ids = add_files(conn, add_library(conn, "photos"), rows)
        summarise_all(conn)
    return ids


def group_page(control: ControlPlane, size: int, token: str = "") -> tuple[list[Group], str]:
    request = pb.ListDuplicateGroupsRequest(page_size=size, page_token=token)
    answer = control.duplicates.ListDuplicateGroups(request)
    groups = [
        Group(group.file_count, group.total_size_bytes, ALGORITHMS[group.hash_algorithm],
              group.content_hash.hex())
        for group in answer.groups
    ]  # fmt: skip
    assert [group.group_key for group in answer.groups] == [group.key for group in groups]
    return groups, answer.next_page_token


def every_group(control: ControlPlane, size: int) -> list[Group]:
    groups, token = group_page(control, size)
    while token:
        more, token = group_page(control, size, token)
        assert more
        groups += more
    return groups


def file_page(
    control: ControlPlane, group_key: str, size: int, token: str = ""
) -> tuple[list[int], str]:
    answer = control.duplicates.ListDuplicateFiles(
        pb.ListDuplicateFilesRequest(
            parent=f"duplicateGroups/{group_key}", page_size=size, page_token=token
        )
    )
    return [int(file.name.rpartition("/")[2]) for file in answer.files], answer.next_page_token


def copies(number: int, count: int, size: int = 10, algorithm: str = "blake3") -> list[Any]:
    return [content(number, algorithm) | {"size_bytes": size}] * count


def test_groups_come_by_count_then_size_then_algorithm_then_hash(control: ControlPlane) -> None:
    smaller, larger = sorted((1, 2), key=digest)
    fill(
        control,
        *copies(larger, 2, 50),
        *copies(smaller, 2, 50),
        *copies(3, 2, 50, "sha256"),
        *copies(4, 3, 1),
        *copies(5, 2, 60),
        *copies(6, 1, 999),
    )
    groups = every_group(control, 100)
    assert [group.key for group in groups] == [
        f"blake3:{digest(4).hex()}",
        f"blake3:{digest(5).hex()}",
        f"blake3:{digest(smaller).hex()}",
        f"blake3:{digest(larger).hex()}",
        f"sha256:{digest(3).hex()}",
    ]


def test_a_group_says_how_much_its_copies_take(control: ControlPlane) -> None:
    fill(control, *copies(1, 3, 70))
    (group,) = control.client.duplicate_groups()
    assert (group.file_count, group.total_size_bytes) == (3, 210)
    assert (group.size_bytes, group.reclaimable_bytes) == (70, 140)
    assert group.name == f"duplicateGroups/blake3:{digest(1).hex()}"


@pytest.mark.parametrize("order", pb.ListDuplicateGroupsRequest.Order.keys())
def test_groups_are_shown_as_they_are_however_often_their_page_was_asked_for(
    control: ControlPlane, order: str
) -> None:
    fill(control, *copies(1, 4, 70), *copies(2, 3, 60), *copies(3, 2, 50))
    request = pb.ListDuplicateGroupsRequest(page_size=2, order=order)
    before = control.duplicates.ListDuplicateGroups(request)
    assert control.duplicates.ListDuplicateGroups(request) == before
    with control.database.control.write() as conn:
        changed = conn.execute(
            text(
                "UPDATE duplicate_groups SET file_count = 5, size_bytes = 80,"
                " total_size_bytes = 400, reclaimable_bytes = 320 WHERE content_hash = :hash"
            ),
            {"hash": digest(2)},
        )
        assert changed.rowcount == 1
    first, second = control.duplicates.ListDuplicateGroups(request).groups
    assert second == before.groups[0]
    assert first.content_hash == digest(2)
    assert (first.file_count, first.size_bytes) == (5, 80)
    assert (first.total_size_bytes, first.reclaimable_bytes) == (400, 320)


def test_the_cursor_is_base64url_json_of_the_four_named_fields(control: ControlPlane) -> None:
    fill(control, *copies(1, 2, 30), *copies(2, 2, 20), *copies(3, 2, 10, "sha256"))
    (_, tail), token = group_page(control, 2)
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    cursor = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert cursor == {
        "file_count": 2,
        "total_size_bytes": 40,
        "hash_algorithm": "blake3",
        "content_hash_hex": tail.content_hash_hex,
    }
    written_elsewhere = base64.urlsafe_b64encode(json.dumps(cursor, indent=1).encode()).decode()
    assert group_page(control, 2, written_elsewhere) == group_page(control, 2, token)


@pytest.mark.parametrize(
    "left_out",
    [
        {"is_missing": True},
        {"needs_hash": True},
        {"hash_algorithm": None, "content_hash": None},
        {"hash_algorithm": "sha256"},
    ],
    ids="+".join,
)
def test_a_file_outside_the_source_set_does_not_count(
    control: ControlPlane, left_out: dict[str, Any]
) -> None:
    three, two = copies(1, 3), copies(2, 2)
    three[2], two[1] = three[2] | left_out, two[1] | left_out
    ids = fill(control, *three, *two)
    assert every_group(control, 10) == [Group(2, 20, "blake3", digest(1).hex())]
    assert file_page(control, f"blake3:{digest(1).hex()}", 10) == (ids[:2], "")
    assert file_page(control, f"blake3:{digest(2).hex()}", 10) == ([ids[3]], "")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    files=st.lists(
        st.tuples(
            st.integers(1, 9),
            st.sampled_from(["blake3", "sha256"]),
            st.sampled_from([0, 1, 2**40]),
            st.sampled_from([{}, {}, {}, {"is_missing": True}, {"needs_hash": True}]),
        ),
        max_size=40,
    ),
    size=st.integers(1, 5),
)
def test_every_page_size_shows_the_groups_of_the_protocol_in_its_order(
    control: ControlPlane, files: list[tuple[int, str, int, dict[str, bool]]], size: int
) -> None:
    rows = [content(n, algorithm) | {"size_bytes": s} | flags for n, algorithm, s, flags in files]
    fill(control, *rows)
    with control.database.control.read() as conn:
        expected = expected_groups(conn)
    assert every_group(control, size) == expected


def test_the_files_of_a_group_come_by_id_with_the_last_id_as_token(control: ControlPlane) -> None:
    ids = fill(control, *copies(1, 5), *copies(2, 2))
    with control.database.control.write() as conn:
        elsewhere = add_files(conn, add_library(conn, "films"), copies(1, 1))
    key = f"blake3:{digest(1).hex()}"
    first, token = file_page(control, key, 2)
    assert (first, token) == (ids[:2], str(ids[1]))
    second, token = file_page(control, key, 2, token)
    assert (second, token) == (ids[2:4], str(ids[3]))
    assert file_page(control, key, 2, token) == ([ids[4], *elsewhere], "")


def test_a_group_that_nobody_has_is_an_empty_page(control: ControlPlane) -> None:
    assert file_page(control, "sha256:" + "0" * 64, 10) == ([], "")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "blake3",
        "blake3:",
        "md5:" + "0" * 64,
        "blake3:" + "0" * 63,
        "blake3:" + "0" * 65,
        "blake3:" + "G" * 64,
        "BLAKE3:" + "0" * 64,
        "sha256:" + "A" * 64,
        "sha256:" + "0" * 64 + "\n",
    ],
)
def test_a_group_key_of_another_form_is_refused(control: ControlPlane, key: str) -> None:
    request = pb.ListDuplicateFilesRequest(parent=f"duplicateGroups/{key}")
    error = refusal(control.duplicates.ListDuplicateFiles, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "64 hex digits" in error.text
