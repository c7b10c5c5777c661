"""What several tenants share without meeting: contents, sizes, pages, places and names."""

from typing import Any

import grpc
import pytest
from grpc import StatusCode
from sqlalchemy import text

from control_plane.policy import admission, trash
from control_plane.store import events, retention
from data_plane.media import cleanup_task
from mediaplane.errors import FailedPrecondition
from mediaplane.protocol.values import JobKind, Role
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from mediaplane.v1 import job_service_pb2 as jobs_pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from mediaplane.v1 import thumbnail_service_pb2 as thumbnails_pb
from tests.support.control import PROBE, SCAN, ControlPlane, Refusal, refusal_of
from tests.support.files import add_files, add_library, content, summarise_all
from tests.support.hashing import plan_hash
from tests.support.rows import Rows
from tests.support.tokens import add_token, bearing

ORDERS = [
    duplicates_pb.ListDuplicateGroupsRequest.ORDER_COPIES,
    duplicates_pb.ListDuplicateGroupsRequest.ORDER_RECLAIMABLE,
]


def add_tenant(control: ControlPlane, tenant: str, *rows: dict[str, Any]) -> list[int]:
    """Give a tenant a library of its own name with these files."""
    with control.database.control.write() as conn:
        files = add_files(conn, add_library(conn, tenant, tenant_id=tenant), rows)
        summarise_all(conn)
    return files


def metadata(control: ControlPlane, tenant: str) -> Any:
    return bearing(add_token(control.database, Role.ADMIN, tenant))


def groups(control: ControlPlane, order: Any, size: int, **options: Any) -> list[tuple[str, int]]:
    """All groups in pages of a size, as tenant and copies."""
    found, token, is_more = [], "", True
    while is_more:
        request = duplicates_pb.ListDuplicateGroupsRequest(
            order=order, page_size=size, page_token=token
        )
        answer = control.duplicates.ListDuplicateGroups(request, **options)
        found += [(group.tenant, group.file_count) for group in answer.groups]
        token, is_more = answer.next_page_token, bool(answer.next_page_token)
    return found


def refused(call: Any, request: Any, **options: Any) -> Refusal:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, **options)
    return refusal_of(caught.value)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_content_of_several_tenants_is_a_group_of_each(
    control: ControlPlane, order: Any, size: int
) -> None:
    add_tenant(control, "default", content(1), content(1))
    add_tenant(control, "north", content(1), content(1), content(2), content(2), content(2))
    add_tenant(control, "south", content(1), content(1), content(3))
    add_tenant(control, "west", content(3))
    most = [("north", 3)]
    alike = [("default", 2), ("north", 2), ("south", 2)]
    assert groups(control, order, size) == most + alike
    north = metadata(control, "north")
    assert groups(control, order, size, metadata=north) == [("north", 3), ("north", 2)]
    assert groups(control, order, size, metadata=metadata(control, "west")) == []


def test_the_files_of_a_group_are_those_of_the_tenant_that_is_named(control: ControlPlane) -> None:
    (north, *_) = add_tenant(control, "north", content(1), content(1))
    (south, *_) = add_tenant(control, "south", content(1), content(1))
    (group, _other) = control.client.duplicate_groups()

    def first_file(**request: Any) -> str:
        asked = duplicates_pb.ListDuplicateFilesRequest(parent=group.name, **request)
        return control.duplicates.ListDuplicateFiles(asked).files[0].name

    assert first_file() == f"libraries/north/files/{north}"
    assert first_file(tenant="south") == f"libraries/south/files/{south}"


def test_a_size_that_another_tenant_has_too_asks_for_no_hash(control: ControlPlane) -> None:
    alone, *twins = add_tenant(
        control, "north", {"size_bytes": 10}, {"size_bytes": 20}, {"size_bytes": 20}
    )
    add_tenant(control, "south", {"size_bytes": 10}, {"size_bytes": 20})
    plan_hash(control.database.control, tenant_id="north")
    with control.database.control.read() as conn:
        marked = conn.scalars(text("SELECT id FROM library_files WHERE needs_hash ORDER BY id"))
        assert list(marked) == twins
    assert alone not in twins


def test_one_file_in_the_libraries_of_two_tenants_is_hashed_for_each(control: ControlPlane) -> None:
    same = {"inode": 5, "size_bytes": 10}
    for tenant in ("north", "south"):
        add_tenant(control, tenant, same, {"inode": 6, "size_bytes": 10})
    for tenant in ("north", "south"):
        job = plan_hash(control.database.control, tenant_id=tenant)
        assert job["total_items"] == 2
        control.client.cancel_job(f"jobs/{job['id']}")


def test_a_restored_file_keeps_its_hash_beside_another_tenants_name_of_it(
    control: ControlPlane,
) -> None:
    same = {"inode": 5, **content(1)}
    for tenant in ("north", "south"):
        add_tenant(control, tenant, same)
    with control.database.control.write() as conn:
        trash.delete(conn, "north", "north")
    trash.restore(control.database.control, "north", "north")
    with control.database.control.read() as conn:
        kept = text("SELECT count(*) FROM library_files WHERE content_hash IS NOT NULL")
        assert conn.execute(kept).scalar() == 2


def test_a_hash_of_all_libraries_keeps_those_of_its_tenant_alone_from_the_trash(
    control: ControlPlane,
) -> None:
    for tenant in ("north", "south"):
        add_tenant(control, tenant)
    with control.database.control.write() as conn:
        admission.create(conn, admission.Wanted(JobKind.HASH, None, "south"))
        assert trash.delete(conn, None, "north")["deleted_at"] is not None
        with pytest.raises(FailedPrecondition, match="works on library 'south'"):
            trash.delete(conn, None, "south")


def test_a_clean_up_removes_the_thumbnails_of_its_tenant_alone(control: ControlPlane) -> None:
    kept, cleaned = "south", "north"
    database = control.database
    for tenant in (kept, cleaned):
        (file_id,) = add_tenant(control, tenant, {"media_type": "image"})
        with database.control.write() as conn:
            Rows(conn).add("thumbnails", file_id=file_id, group_key="wall", status="ready")
    request = thumbnails_pb.ScheduleCleanupRequest(group_key="wall")
    service = control.client.thumbnail_service
    service.ScheduleCleanup(request, metadata=metadata(control, cleaned))
    with database.control.read() as conn:
        (cleanup,) = conn.execute(text("SELECT * FROM thumbnail_cleanup_jobs")).mappings()
    assert len(list(cleanup_task(database.data, cleanup).forget())) == 1
    owner = (
        "SELECT l.slug FROM thumbnails t JOIN library_files f ON f.id = t.file_id"
        " JOIN libraries l ON l.slug = f.library_id"
    )
    with database.control.read() as conn:
        assert list(conn.scalars(text(owner))) == [kept]


def test_a_watcher_of_one_tenant_hears_of_its_jobs_alone(control: ControlPlane) -> None:
    north, south = metadata(control, "north"), metadata(control, "south")
    request = jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind=PROBE))
    earlier = [control.jobs.CreateJob(request, metadata=one).name for one in (south, north)]
    watched = control.jobs.WatchJobs(jobs_pb.WatchJobsRequest(after_event_id=0), metadata=north)
    # The events come in their order: whatever is South's would come first.
    assert next(watched).job.name == earlier[1]
    later = [control.jobs.CreateJob(request, metadata=one).name for one in (south, north)]
    assert next(watched).job.name == later[1]
    watched.cancel()


def test_an_active_scan_of_another_tenant_is_not_named(control: ControlPlane) -> None:
    for tenant in ("north", "south"):
        add_tenant(control, tenant)
    job = control.create(SCAN, "libraries/south")
    assert job.tenant == "south"
    request = libraries_pb.ScanLibraryRequest(name="libraries/north")
    told = refused(control.libraries.ScanLibrary, request, metadata=metadata(control, "north"))
    assert (told.code, told.reason) == (StatusCode.ALREADY_EXISTS, "ACTIVE_JOB_EXISTS")
    assert told.metadata == {}
    assert job.name.rpartition("/")[2] not in told.text
    assert job.name in refused(control.libraries.ScanLibrary, request).metadata.values()


@pytest.mark.parametrize("root", [b"/media/south", b"/media/south/below", b"/media"])
def test_a_folder_of_another_tenant_is_not_available(control: ControlPlane, root: bytes) -> None:
    add_tenant(control, "south")
    library = libraries_pb.Library(display_name="mine", root_path=root, tenant="north")
    request = libraries_pb.CreateLibraryRequest(library=library)
    told = refused(control.libraries.CreateLibrary, request)
    assert told.code is StatusCode.FAILED_PRECONDITION
    assert "another tenant" in told.text
    assert "south" not in told.text.replace(root.decode(), "")
    assert told.metadata == {}


@pytest.mark.parametrize("deleted_at", [None, 1])
def test_a_slug_of_another_tenant_is_not_available(
    control: ControlPlane, deleted_at: int | None
) -> None:
    with control.database.control.write() as conn:
        add_library(conn, "films", tenant_id="south", deleted_at=deleted_at)
    library = libraries_pb.Library(display_name="Films", root_path=b"/elsewhere", tenant="north")
    request = libraries_pb.CreateLibraryRequest(library=library)
    told = refused(control.libraries.CreateLibrary, request)
    assert told.text == "The library id 'films' is not available; choose another name or id."
    assert (told.code, told.metadata) == (StatusCode.ALREADY_EXISTS, {})


def test_only_who_sees_all_tenants_gives_a_tenant_a_folder(control: ControlPlane) -> None:
    library = libraries_pb.Library(display_name="Films", root_path=b"/films", tenant="south")
    request = libraries_pb.CreateLibraryRequest(library=library)
    told = refused(control.libraries.CreateLibrary, request, metadata=metadata(control, "north"))
    assert told.code is StatusCode.PERMISSION_DENIED
    assert control.libraries.CreateLibrary(request).tenant == "south"
    own = libraries_pb.Library(display_name="Mine", root_path=b"/proc/self/root/films")
    alias = libraries_pb.CreateLibraryRequest(library=own)
    told = refused(control.libraries.CreateLibrary, alias, metadata=metadata(control, "north"))
    assert told.code is StatusCode.PERMISSION_DENIED, "it is another name for south's"


def test_a_request_id_is_a_tenants_own(control: ControlPlane) -> None:
    request = jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind=PROBE), request_id="once")
    north, south = metadata(control, "north"), metadata(control, "south")
    first = control.jobs.CreateJob(request, metadata=north)
    assert control.jobs.CreateJob(request, metadata=north).name == first.name
    assert control.jobs.CreateJob(request, metadata=south).name != first.name


def test_a_page_of_a_tenants_events_looks_at_no_more_than_it_may(
    control: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LOOK_EVENTS", 3)
    north, south = metadata(control, "north"), metadata(control, "south")
    request = jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind=PROBE))
    wanted = []
    for number in range(20):
        job = control.jobs.CreateJob(request, metadata=north if number % 9 == 0 else south)
        wanted += [job.name] * (job.tenant == "north")
    pages: list[list[str]] = []
    token, is_more = "", True
    while is_more:
        asked = jobs_pb.ListEventsRequest(parent="jobs/-", page_token=token)
        answer = control.jobs.ListEvents(asked, metadata=north)
        pages.append([event.name.rpartition("/events/")[0] for event in answer.events])
        token, is_more = answer.next_page_token, bool(answer.next_page_token)
    assert [name for page in pages for name in page] == wanted
    assert [] in pages


def test_who_sees_all_tenants_pages_through_their_jobs_newest_first(control: ControlPlane) -> None:
    callers = [metadata(control, tenant) for tenant in ("south", "north")]
    request = jobs_pb.CreateJobRequest(job=jobs_pb.Job(kind=PROBE))
    added = [control.jobs.CreateJob(request, metadata=callers[n % 2]).name for n in range(6)]
    found: list[str] = []
    token, is_more = "", True
    while is_more:
        answer = control.jobs.ListJobs(jobs_pb.ListJobsRequest(page_size=1, page_token=token))
        found += [job.name for job in answer.jobs]
        token, is_more = answer.next_page_token, bool(answer.next_page_token)
    assert found == added[::-1]


def test_the_old_jobs_of_every_tenant_are_forgotten(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        rows = Rows(conn)
        ended = {"status": "completed", "created_at": 1, "finished_at": 1}
        old = [rows.add("jobs", tenant_id=tenant, **ended) for tenant in ("north", "south")]
        rows.add("jobs", tenant_id="north", status="completed", finished_at=rows.now())
        assert retention.ended_jobs(conn, 60_000, 10) == old
        assert retention.ended_jobs(conn, 60_000, 1) == old[:1]
