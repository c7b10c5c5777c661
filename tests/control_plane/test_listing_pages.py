"""Pages of files, assets, scan errors, libraries and workers, whatever their names are made of."""

from collections.abc import Callable
from typing import Any

import pytest
from grpc import StatusCode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, text

from mediaplane import media
from mediaplane.paths import display
from mediaplane.protocol.tables import assets, scan_errors
from mediaplane.v1 import asset_service_pb2 as assets_pb
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from mediaplane.v1 import library_service_pb2 as pb
from mediaplane.v1 import worker_service_pb2 as workers_pb
from tests.support.control import ControlPlane, refusal
from tests.support.files import add_files, add_library, content, digest
from tests.support.rows import Rows

PHOTOS = "libraries/photos"
PATHS = [
    b"\x01",
    b"a\nb",
    b"a/b",
    b"caf\xc3\xa9",
    b"caf\xe9",
    b"cafe\xcc\x81",
    b"x\xff\xfe",
    b"\xf0\x9f\x98\x80",
    b"\xff" * 255,
    b"\xff" * 255 + b"/b",
]
paths = st.binary(min_size=1, max_size=12).filter(lambda path: b"\0" not in path)


def every(call: Callable[[Any], Any], request: Any, field: str, size: int) -> list[Any]:
    """All rows of a listing, in pages of a size that the server must keep to."""
    request.page_size = size
    rows: list[Any] = []
    while True:
        answer = call(request)
        page = getattr(answer, field)
        assert len(page) <= size
        rows += page
        request.page_token = answer.next_page_token
        if not request.page_token:
            return rows
        assert page


def fill(control: ControlPlane, names: list[bytes]) -> None:
    with control.database.control.write() as conn:
        for table in ("library_files", "assets", "scan_errors", "scan_sessions", "libraries"):
            conn.execute(text(f"DELETE FROM {table}"))
        photos, films = add_library(conn, "photos"), add_library(conn, "films")
        for library in (photos, films):
            add_files(conn, library, [{"rel_path": name} for name in names])
            picture = {"library_id": library, "type": "image", "mtime": 1.5, "size": 10}
            if names:
                conn.execute(insert(assets), [picture | {"rel_path": name} for name in names])


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(names=st.lists(paths, unique=True, max_size=12), size=st.integers(1, 4))
def test_files_and_assets_come_in_the_byte_order_of_their_paths(
    control: ControlPlane, names: list[bytes], size: int
) -> None:
    fill(control, names)
    request = pb.ListFilesRequest(parent=PHOTOS)
    files = every(control.libraries.ListFiles, request, "files", size)
    assert [file.rel_path for file in files] == sorted(names)
    asked = assets_pb.ListAssetsRequest(parent=PHOTOS)
    found = every(control.client.asset_service.ListAssets, asked, "assets", size)
    assert [asset.rel_path for asset in found] == sorted(names)


def test_a_path_comes_back_byte_for_byte_with_a_form_to_show(control: ControlPlane) -> None:
    fill(control, PATHS)
    files = list(control.client.files("photos", has_error=False, include_missing=False))
    assert {file.rel_path for file in files} == set(PATHS)
    assert [file.rel_path_display for file in files] == [display(name) for name in sorted(PATHS)]
    assert len({file.rel_path_display for file in files}) == len(PATHS)
    (asset, *_) = media.assets(control.client, "photos")
    assert (asset.type, asset.state) == (assets_pb.Asset.TYPE_IMAGE, assets_pb.Asset.STATE_PENDING)
    assert asset.modify_time_seconds == 1.5


def test_missing_files_and_files_with_errors_are_listed_when_asked_for(
    control: ControlPlane,
) -> None:
    with control.database.control.write() as conn:
        rows: list[dict[str, Any]] = [
            {"rel_path": b"missing", "is_missing": True},
            {"rel_path": b"broken", "error_code": "permission_denied"},
            {"rel_path": b"fine"} | content(1),
        ]
        add_files(conn, add_library(conn, "photos"), rows)

    def listed(*, has_error: bool, include_missing: bool) -> list[bytes]:
        files = control.client.files("photos", has_error=has_error, include_missing=include_missing)
        return [file.rel_path for file in files]

    assert listed(has_error=False, include_missing=False) == [b"broken", b"fine"]
    assert listed(has_error=False, include_missing=True) == [b"broken", b"fine", b"missing"]
    assert listed(has_error=True, include_missing=True) == [b"broken"]
    (_, fine) = control.client.files("photos", has_error=False, include_missing=False)
    assert (fine.content_hash, fine.group_key) == (digest(1), f"blake3:{digest(1).hex()}")


def test_pages_of_the_longest_paths_still_fit_into_a_message(control: ControlPlane) -> None:
    names = [b"%03d" % number + b"\xff" * 4092 for number in range(220)]
    with control.database.control.write() as conn:
        rows = [{"rel_path": name} | content(1) for name in names]
        add_files(conn, add_library(conn, "photos"), rows)
    files = every(control.libraries.ListFiles, pb.ListFilesRequest(parent=PHOTOS), "files", 1000)
    assert [file.rel_path for file in files] == names
    request = duplicates_pb.ListDuplicateFilesRequest(parent=f"blake3:{digest(1).hex()}")
    copies = every(control.duplicates.ListDuplicateFiles, request, "files", 1000)
    assert [file.rel_path for file in copies] == names


def test_what_the_last_good_scan_could_not_look_at_is_listed(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        add_library(conn, "photos")
        for status, code in (("succeeded", "old"), ("succeeded", "denied"), ("failed", "failed")):
            session = Rows(conn).add("scan_sessions", library_id="photos", status=status)
            reason = {"session_id": session, "error_code": code, "error_message": "No."}
            conn.execute(insert(scan_errors), [reason | {"rel_path": name} for name in PATHS])
    request = pb.ListScanErrorsRequest(parent=PHOTOS)
    found = every(control.libraries.ListScanErrors, request, "scan_errors", 3)
    assert [(error.rel_path, error.error_code) for error in found] == [
        (name, "denied") for name in PATHS
    ]


def test_libraries_and_workers_come_by_name(control: ControlPlane) -> None:
    slugs = ["b", "a", "a-b", "ab", "0", "z9"]
    workers = ["host:9", "host:10", "höst ✓", "'; --"]
    with control.database.control.write() as conn:
        for slug in slugs:
            add_library(conn, slug)
        for name in workers:
            Rows(conn).add("worker_status", worker_id=name, stats={"slots": 2})
    libraries = every(control.libraries.ListLibraries, pb.ListLibrariesRequest(), "libraries", 2)
    assert [library.name for library in libraries] == [
        f"libraries/{slug}" for slug in sorted(slugs)
    ]
    request = workers_pb.ListWorkersRequest()
    found = every(control.client.worker_service.ListWorkers, request, "workers", 3)
    assert [worker.name for worker in found] == [f"workers/{name}" for name in sorted(workers)]
    assert {worker.state for worker in found} == {workers_pb.Worker.STATE_IDLE}
    assert dict(found[0].stats) == {"slots": 2}


@pytest.mark.parametrize("listing", ["ListFiles", "ListScanErrors", "ListAssets"])
def test_a_library_that_does_not_exist_is_not_an_empty_one(
    control: ControlPlane, listing: str
) -> None:
    calls: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "ListFiles": (control.libraries.ListFiles, pb.ListFilesRequest),
        "ListScanErrors": (control.libraries.ListScanErrors, pb.ListScanErrorsRequest),
        "ListAssets": (control.client.asset_service.ListAssets, assets_pb.ListAssetsRequest),
    }
    call, request = calls[listing]
    assert refusal(call, request(parent=PHOTOS)).code is StatusCode.NOT_FOUND
