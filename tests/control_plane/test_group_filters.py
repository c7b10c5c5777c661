"""Duplicate groups in either order and by filters: each once, whatever happens meanwhile."""

from typing import Any, NamedTuple

import pytest
from grpc import StatusCode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, text, update

from control_plane.store import groups
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.duplicates import summarise
from mediaplane.protocol.tables import duplicate_groups, library_files
from mediaplane.v1 import asset_service_pb2 as assets_pb
from mediaplane.v1 import duplicate_service_pb2 as pb
from tests.support.control import ControlPlane, refusal
from tests.support.files import add_files, add_library, content, digest

Request = pb.ListDuplicateGroupsRequest
IMAGE, VIDEO = assets_pb.Asset.TYPE_IMAGE, assets_pb.Asset.TYPE_VIDEO


class Content(NamedTuple):
    """A content with one copy in a place of its own, and the others in the library `other`."""

    number: int
    copies: int = 2
    size_bytes: int = 10
    library: str = "photos"
    folder: bytes = b"trips"
    media_type: str | None = "image"

    def matches(self, asked: dict[str, Any]) -> bool:
        type_name = {IMAGE: "image", VIDEO: "video"}.get(asked.get("media_type", 0))
        folder = asked.get("path_prefix", b"")
        return (
            self.size_bytes >= asked.get("min_size_bytes", 0)
            and asked.get("library", "") in ("", f"libraries/{self.library}")
            and folder in (b"", self.folder)
            and type_name in (None, self.media_type)
        )


def put(conn: Connection, one: Content) -> None:
    """Replace the files of a content, and count its group anew."""
    forget(conn, one.number)
    row = content(one.number) | {"size_bytes": one.size_bytes, "media_type": one.media_type}
    add_files(conn, one.library, [row | {"rel_path": b"%b/%d" % (one.folder, one.number)}])
    paths = [b"%d/%d" % (one.number, copy) for copy in range(1, one.copies)]
    add_files(conn, "other", [row | {"rel_path": path} for path in paths])
    summarise(conn, [("blake3", digest(one.number))])


def forget(conn: Connection, number: int) -> None:
    conn.execute(
        text("DELETE FROM library_files WHERE content_hash = :hash"), {"hash": digest(number)}
    )
    summarise(conn, [("blake3", digest(number))])


def fill(control: ControlPlane, *contents: Content) -> None:
    with control.database.control.write() as conn:
        for table in ("duplicate_groups", "library_files", "libraries"):
            conn.execute(text(f"DELETE FROM {table}"))
        for slug in ("photos", "films", "other"):
            add_library(conn, slug)
        for one in contents:
            put(conn, one)


def page(control: ControlPlane, **asked: Any) -> tuple[list[bytes], str]:
    answer = control.duplicates.ListDuplicateGroups(Request(**asked))
    return [group.content_hash for group in answer.groups], answer.next_page_token


def numbers(control: ControlPlane, **asked: Any) -> list[int]:
    """Walk the whole listing, and return the numbers of the contents in it."""
    known = {digest(number): number for number in range(1, 20)}
    found, token = page(control, page_size=2, **asked)
    while token:
        more, token = page(control, page_size=2, page_token=token, **asked)
        found += more
    return [known[content_hash] for content_hash in found]


def test_a_group_is_found_by_each_name_of_its_files_in_whatever_library(
    control: ControlPlane,
) -> None:
    fill(control, Content(1), Content(2))
    with control.database.control.write() as conn:
        first = text("SELECT min(inode) FROM library_files WHERE content_hash = :hash")
        inode = conn.execute(first, {"hash": digest(1)}).scalar_one()
        linked = {"rel_path": b"linked/1", "inode": inode, "media_type": "video"}
        add_files(conn, "films", [linked, linked | {"rel_path": b"linked/2", "inode": 10**6}])
    assert numbers(control, library="libraries/films") == [1]
    assert numbers(control, library="libraries/films", path_prefix=b"linked") == [1]
    assert numbers(control, library="libraries/films", media_type=VIDEO) == [1]
    assert numbers(control, library="libraries/films", media_type=IMAGE) == []
    with control.database.control.write() as conn:
        conn.execute(text("UPDATE libraries SET deleted_at = 1 WHERE slug = 'films'"))
    assert numbers(control, media_type=VIDEO) == []


def test_what_frees_most_comes_first_and_equals_come_by_hash_descending(
    control: ControlPlane,
) -> None:
    equal = sorted((3, 4, 5), key=digest, reverse=True)
    fill(
        control,
        Content(1, copies=9, size_bytes=1),
        Content(2, copies=2, size_bytes=2**40),
        *(Content(number, copies=3, size_bytes=50) for number in equal),
    )
    assert numbers(control, order=Request.ORDER_RECLAIMABLE) == [2, *equal, 1]
    assert numbers(control, order=Request.ORDER_COPIES)[0] == 1


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {1, 2, 3, 4}),
        ({"library": "libraries/photos"}, {1, 2, 3}),
        ({"library": "libraries/other"}, {1, 2, 3, 4}),
        ({"library": "libraries/photos", "path_prefix": b"trips"}, {1}),
        ({"library": "libraries/photos", "path_prefix": b"trips/"}, {1}),
        ({"library": "libraries/photos", "path_prefix": b"trip"}, set()),
        ({"library": "libraries/photos", "path_prefix": b"\xff\n"}, {3}),
        ({"library": "libraries/films", "path_prefix": b"trips"}, {4}),
        ({"media_type": VIDEO}, {2}),
        ({"media_type": IMAGE}, {1, 4}),
        ({"min_size_bytes": 10}, {1, 2, 3}),
        ({"min_size_bytes": 11}, {2}),
        ({"library": "libraries/photos", "media_type": IMAGE, "min_size_bytes": 10}, {1}),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", [Request.ORDER_COPIES, Request.ORDER_RECLAIMABLE])
def test_a_filter_lets_through_what_it_says(
    control: ControlPlane, asked: dict[str, Any], expected: set[int], order: Any
) -> None:
    fill(
        control,
        Content(1),
        Content(2, size_bytes=11, folder=b"trips2", media_type="video"),
        Content(3, folder=b"\xff\n", media_type=None),
        Content(4, size_bytes=9, library="films"),
    )
    assert set(numbers(control, order=order, **asked)) == expected


def test_a_file_that_is_missing_puts_its_group_in_no_folder(control: ControlPlane) -> None:
    fill(control, Content(1, copies=3), Content(2, copies=3))
    with control.database.control.write() as conn:
        lost = update(library_files).where(library_files.c.rel_path == b"trips/1")
        assert conn.execute(lost.values(is_missing=True)).rowcount == 1
        summarise(conn, [("blake3", digest(1))])
    assert numbers(control, library="libraries/photos") == [2]
    assert set(numbers(control)) == {1, 2}


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ({"path_prefix": b"trips"}, StatusCode.INVALID_ARGUMENT, "library"),
        ({"library": "photos"}, StatusCode.INVALID_ARGUMENT, "libraries/"),
        ({"library": "libraries/nobody"}, StatusCode.NOT_FOUND, "nobody"),
        ({"library": "libraries/trashed"}, StatusCode.NOT_FOUND, "trashed"),
        ({"min_size_bytes": -1}, StatusCode.INVALID_ARGUMENT, "-1"),
        ({"order": 99}, StatusCode.INVALID_ARGUMENT, "99"),
        ({"media_type": 99}, StatusCode.INVALID_ARGUMENT, "99"),
        *(
            ({"library": "libraries/photos", "path_prefix": folder},
             StatusCode.INVALID_ARGUMENT, "path_prefix")
            for folder in (b"/", b"/trips", b"..", b"a//b", b"a\0")
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_that_can_never_be_right_is_refused(
    control: ControlPlane, asked: dict[str, Any], code: StatusCode, words: str
) -> None:
    fill(control)
    with control.database.control.write() as conn:
        add_library(conn, "trashed", deleted_at=1)
    error = refusal(control.duplicates.ListDuplicateGroups, Request(**asked))
    assert error.code is code
    assert words in error.text


QUERIES: list[dict[str, Any]] = [
    {},
    {"order": Request.ORDER_RECLAIMABLE},
    {"min_size_bytes": 1},
    {"min_size_bytes": 2},
    {"library": "libraries/photos"},
    {"library": "libraries/photos", "path_prefix": b"trips"},
    {"order": Request.ORDER_RECLAIMABLE, "media_type": IMAGE},
]


@pytest.mark.parametrize("asked", QUERIES, ids=str)
def test_a_token_serves_no_other_order_and_no_other_filter(
    control: ControlPlane, asked: dict[str, Any]
) -> None:
    fill(control, *(Content(number) for number in range(1, 4)))
    _, token = page(control, page_size=1, **asked)
    assert page(control, page_size=1, page_token=token, **asked)[0]
    for other in QUERIES:
        if other != asked:
            request = Request(page_token=token, **other)
            error = refusal(control.duplicates.ListDuplicateGroups, request)
            assert (error.code, error.reason) == (
                StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN",
            )  # fmt: skip


def test_one_call_looks_at_a_bounded_number_of_groups(control: ControlPlane) -> None:
    fill(control)
    small = {"hash_algorithm": "blake3", "file_count": 2, "total_size_bytes": 2}
    small |= {"size_bytes": 1, "reclaimable_bytes": 1}
    hashes = sorted(digest(number) for number in range(groups.MAX_LOOKED_AT + 1))
    with control.database.control.write() as conn:
        rows = [small | {"content_hash": content_hash} for content_hash in hashes]
        conn.execute(insert(duplicate_groups).values(updated_at=now_ms()), rows)
    found, token = page(control, min_size_bytes=2)
    assert not found
    assert token
    assert page(control, min_size_bytes=2, page_token=token) == ([], "")


contents = st.builds(
    Content,
    number=st.integers(1, 12),
    copies=st.integers(2, 4),
    size_bytes=st.sampled_from([0, 1, 2, 2**40]),
    library=st.sampled_from(["photos", "films"]),
    folder=st.sampled_from([b"trips", b"trips2", b"trips\xff"]),
    media_type=st.sampled_from(["image", "video", None]),
)
changes = st.lists(contents | st.integers(1, 12), max_size=3)
questions = st.fixed_dictionaries(
    {"order": st.sampled_from([Request.ORDER_COPIES, Request.ORDER_RECLAIMABLE])},
    optional={"media_type": st.sampled_from([IMAGE, VIDEO]), "min_size_bytes": st.just(2)},
)
places = st.sampled_from(
    [{}, {"library": "libraries/films"},
     {"library": "libraries/photos", "path_prefix": b"trips"}]
)  # fmt: skip


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    first=st.lists(contents, min_size=4, max_size=12, unique_by=lambda one: one.number),
    later=st.lists(changes, max_size=6),
    asked=st.builds(lambda question, place: question | place, questions, places),
    size=st.integers(1, 4),
)
def test_groups_that_stay_are_neither_repeated_nor_left_out_while_others_change(
    control: ControlPlane,
    monkeypatch: pytest.MonkeyPatch,
    first: list[Content],
    later: list[list[Content | int]],
    asked: dict[str, Any],
    size: int,
) -> None:
    # So few that a walk over a dozen groups takes several calls and several looks in each.
    monkeypatch.setattr(groups, "LOOK_GROUPS", 2)
    monkeypatch.setattr(groups, "MAX_LOOKED_AT", 4)
    fill(control, *first)
    staying = {one.number: one for one in first}
    pending = iter(later)
    found, token = page(control, page_size=size, **asked)
    while token:
        with control.database.control.write() as conn:
            for change in next(pending, []):
                number = change if isinstance(change, int) else change.number
                staying.pop(number, None)
                forget(conn, number) if isinstance(change, int) else put(conn, change)
        more, token = page(control, page_size=size, page_token=token, **asked)
        assert len(more) <= size
        found += more
    for number, one in staying.items():
        assert found.count(digest(number)) == one.matches(asked)
