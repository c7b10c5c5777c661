"""Page sizes and tokens that a client should not send: refused with words, never an accident."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mediaplane.v1 import asset_service_pb2 as assets_pb
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from mediaplane.v1 import job_service_pb2 as jobs_pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from mediaplane.v1 import worker_service_pb2 as workers_pb
from tests.support.control import ControlPlane, refusal, refusal_of
from tests.support.files import add_files, add_library, content, digest, summarise_all
from tests.support.rows import Rows

GROUP = f"duplicateGroups/blake3:{digest(1).hex()}"
INVALID = (StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")

# The token of these is a plain row id, as the protocol has it for the files of a group.
BY_ROW_ID = {
    "ListJobItemsRequest",
    "ListScanErrorsRequest",
    "ListDuplicateFilesRequest",
}

Call = Callable[[Any], Any]


@pytest.fixture
def filled(control: ControlPlane) -> ControlPlane:
    """Two pages of everything, at one row a page."""
    with control.database.control.write() as conn:
        rows = Rows(conn)
        files = [content(number) for number in (1, 1, 2, 2)]
        add_files(conn, add_library(conn, "photos"), files)
        add_files(conn, add_library(conn, "films"), files)
        summarise_all(conn)
        job = rows.add("jobs", status="completed")
        assert job == 1
        rows.add("jobs", status="failed")
        rows.add("jobs", status="failed")
        for number in (1, 2):
            rows.add("job_items", job_id=job)
            rows.add("events", job_id=job)
            rows.add("worker_status", worker_id=f"worker {number}")
            path = b"%d.jpg" % number
            rows.add("library_files", library_id="photos", rel_path=path)
            rows.add("assets", library_id="photos", rel_path=path)
    return control


def listings(control: ControlPlane) -> Iterator[tuple[str, Call, Any]]:
    """Every listing there is, each with a request for a page of one row."""
    client, photos = control.client, "libraries/photos"
    for call, request in (
        (client.job_service.ListJobs, jobs_pb.ListJobsRequest()),
        (client.job_service.ListJobItems, jobs_pb.ListJobItemsRequest(parent="jobs/1")),
        (client.job_service.ListEvents, jobs_pb.ListEventsRequest(parent="jobs/1")),
        (client.library_service.ListLibraries, libraries_pb.ListLibrariesRequest()),
        (client.library_service.ListFiles, libraries_pb.ListFilesRequest(parent=photos)),
        (client.library_service.ListScanErrors, libraries_pb.ListScanErrorsRequest(parent=photos)),
        (client.asset_service.ListAssets, assets_pb.ListAssetsRequest(parent=photos)),
        (
            client.duplicate_service.ListDuplicateGroups,
            duplicates_pb.ListDuplicateGroupsRequest(),
        ),
        (
            client.duplicate_service.ListDuplicateFiles,
            duplicates_pb.ListDuplicateFilesRequest(parent=GROUP),
        ),
        (client.worker_service.ListWorkers, workers_pb.ListWorkersRequest()),
    ):
        request.page_size = 1
        yield type(request).__name__, call, request


def encoded(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(["\0", "\ud800", "blake3", "sha256", "0" * 64, 2**63, -1, "/w=="])
)
fields = st.sampled_from(
    [
        "created_at",
        "id",
        "query",
        "path",
        "slug",
        "worker",
        "file_count",
        "total_size_bytes",
        "hash_algorithm",
        "content_hash_hex",
    ]
)
shapes = st.sampled_from(
    [
        ["id", "query"],
        ["created_at", "id", "query"],
        ["path", "query"],
        ["slug"],
        ["worker"],
        ["file_count", "total_size_bytes", "hash_algorithm", "content_hash_hex"],
    ]
)
documents = (
    shapes.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, scalars)))
    | st.dictionaries(fields, scalars)
    | st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(fields, inner))
)
numbers = st.integers(min_value=-1, max_value=2**70).map(str)
tokens = (
    st.text(min_size=1)
    | st.text(st.sampled_from("ABCabc012-_="), min_size=1)
    | numbers
    | numbers.map(lambda number: "0" * 25 + number)
    | documents.map(encoded)
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(token=tokens)
def test_any_token_at_all_either_works_or_is_refused_as_such(
    filled: ControlPlane, token: str
) -> None:
    for _name, call, request in listings(filled):
        request.page_token = token
        try:
            call(request)
        except grpc.RpcError as error:
            told = refusal_of(error)
            assert (told.code, told.reason) == INVALID


@pytest.mark.parametrize(
    "token",
    [
        encoded({"slug": "a\0"}),
        encoded({"slug": "\ud800"}),
        encoded({"worker": "a\0"}),
        encoded({"worker": "\ud800"}),
        "0" * 20 + "9" * 30,
        "9" * 19,
        "9" * 5000,
        "٣",
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        encoded({"id": 10**4000, "query": ""}),
    ],
    ids=range(10),
)
def test_a_token_that_some_database_cannot_digest_is_refused_by_every_listing(
    filled: ControlPlane, token: str
) -> None:
    for name, call, request in listings(filled):
        request.page_token = token
        error = refusal(call, request)
        assert (name, error.code, error.reason) == (name, *INVALID)
        assert "begin again" in error.text


def test_a_token_of_one_listing_is_refused_by_every_other(filled: ControlPlane) -> None:
    issued = {name: call(request).next_page_token for name, call, request in listings(filled)}
    assert [name for name, token in issued.items() if not token] == ["ListScanErrorsRequest"]
    for name, call, request in listings(filled):
        for issuer, token in issued.items():
            if token and issuer != name and not {issuer, name} <= BY_ROW_ID:
                request.page_token = token
                error = refusal(call, request)
                assert (issuer, name, error.code, error.reason) == (issuer, name, *INVALID)


def test_a_token_is_refused_when_the_filters_have_changed(filled: ControlPlane) -> None:
    jobs, libraries = filled.jobs, filled.libraries
    failed = jobs_pb.Job.STATE_FAILED
    token = jobs.ListJobs(jobs_pb.ListJobsRequest(page_size=1)).next_page_token
    request: Any = jobs_pb.ListJobsRequest(page_size=1, page_token=token, states=[failed])
    assert refusal(jobs.ListJobs, request).reason == "INVALID_PAGE_TOKEN"
    photos = libraries_pb.ListFilesRequest(parent="libraries/photos", page_size=1)
    token = libraries.ListFiles(photos).next_page_token
    for change in (
        {"parent": "libraries/films"},
        {"parent": "libraries/photos", "has_error": True},
        {"parent": "libraries/photos", "include_missing": True},
    ):
        request = libraries_pb.ListFilesRequest(page_token=token, **change)
        assert refusal(libraries.ListFiles, request).reason == "INVALID_PAGE_TOKEN"


def test_the_order_in_which_filters_are_named_does_not_matter(filled: ControlPlane) -> None:
    states = [jobs_pb.Job.STATE_FAILED, jobs_pb.Job.STATE_COMPLETED]
    first = filled.jobs.ListJobs(jobs_pb.ListJobsRequest(page_size=1, states=states))
    request = jobs_pb.ListJobsRequest(page_token=first.next_page_token, states=states[::-1])
    assert len(filled.jobs.ListJobs(request).jobs) == 2


@pytest.mark.parametrize("change", [{"id": 999_999}, {"created_at": 999_999}], ids=str)
def test_a_token_of_jobs_that_was_changed_by_hand_is_refused(
    filled: ControlPlane, change: dict[str, int]
) -> None:
    issued = filled.jobs.ListJobs(jobs_pb.ListJobsRequest(page_size=1)).next_page_token
    place = json.loads(base64.urlsafe_b64decode(issued + "=" * (-len(issued) % 4)))
    assert place.keys() > change.keys()
    changed = json.dumps(place | change, separators=(",", ":"))
    token = base64.urlsafe_b64encode(changed.encode()).decode().rstrip("=")
    request = jobs_pb.ListJobsRequest(page_token=token)
    assert refusal(filled.jobs.ListJobs, request).reason == "INVALID_PAGE_TOKEN"


def test_a_negative_page_size_is_refused_by_every_listing(filled: ControlPlane) -> None:
    for name, call, request in listings(filled):
        request.page_size = -1
        error = refusal(call, request)
        assert (name, error.code) == (name, StatusCode.INVALID_ARGUMENT)
        assert "page_size" in error.text


@pytest.mark.parametrize(("asked", "given_size"), [(0, 50), (1000, 1000), (1001, 1000)])
def test_a_page_has_fifty_rows_unless_asked_and_a_thousand_at_most(
    control: ControlPlane, asked: int, given_size: int
) -> None:
    with control.database.control.write() as conn:
        add_files(conn, add_library(conn, "photos"), [content(1)] * 1001)
        summarise_all(conn)
    request = libraries_pb.ListFilesRequest(parent="libraries/photos", page_size=asked)
    assert len(control.libraries.ListFiles(request).files) == given_size
    copies = duplicates_pb.ListDuplicateFilesRequest(parent=GROUP, page_size=asked)
    assert len(control.duplicates.ListDuplicateFiles(copies).files) == given_size
