"""The trash: a library in it is as good as gone, and comes back as it was."""

from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import select, text, update

from mediaplane.protocol.duplicates import summarise
from mediaplane.protocol.tables import jobs, library_files
from mediaplane.protocol.write_paths import SUMMARISE
from mediaplane.v1 import library_service_pb2 as pb
from tests.support.control import HASH, SCAN, ControlPlane, at_once, job_id, refusal
from tests.support.files import add_files, content, digest, summarise_all
from tests.support.hashing import plan_hash
from tests.support.rows import Rows

LINKS = {"device": 5, "inode": 77}


def fill(control: ControlPlane, **libraries: list[dict[str, Any]]) -> None:
    for slug in libraries:
        control.library(slug)
    with control.database.control.write() as conn:
        for slug, rows in libraries.items():
            add_files(conn, slug, rows)
        summarise_all(conn)


def group_sizes(control: ControlPlane) -> dict[str, int]:
    """Files in each group, as the summary has them and as the listing of its files does."""
    groups = {group.group_key: group.file_count for group in control.client.duplicate_groups()}
    listed = {key: len(list(control.client.duplicate_files(key))) for key in groups}
    assert listed == groups
    return groups


def key(number: int) -> str:
    return f"blake3:{digest(number).hex()}"


def refused(control: ControlPlane, slug: str) -> Any:
    return refusal(lambda _: control.client.remove_library(slug), None)


def test_a_removed_library_is_listed_in_the_trash_alone(control: ControlPlane) -> None:
    fill(control, photos=[{}], films=[{}])
    removed = control.client.remove_library("photos")
    assert removed.HasField("delete_time")
    assert list(control.client.libraries(in_trash=True)) == [removed]
    assert [found.name for found in control.client.libraries()] == ["libraries/films"]
    hidden = refusal(control.libraries.GetLibrary, pb.GetLibraryRequest(name="libraries/photos"))
    assert hidden.code is StatusCode.NOT_FOUND
    assert "mediaplane library restore photos" in hidden.text


def test_files_of_a_removed_library_are_no_duplicates(control: ControlPlane) -> None:
    fill(
        control,
        photos=[content(1), content(1), content(2), content(4), content(4)],
        films=[content(1), content(2), content(3), content(3)],
    )
    before = {key(1): 3, key(2): 2, key(3): 2, key(4): 2}
    assert group_sizes(control) == before
    control.client.remove_library("films")
    assert group_sizes(control) == {key(1): 2, key(4): 2}
    assert list(control.client.duplicate_files(key(3))) == []
    control.client.remove_library("photos")
    assert group_sizes(control) == {}
    control.client.restore_library("films")
    assert group_sizes(control) == {key(3): 2}
    control.client.restore_library("photos")
    assert group_sizes(control) == before


def test_the_bytes_of_a_group_are_those_of_the_files_that_count(control: ControlPlane) -> None:
    fill(control, photos=[content(1)] * 2, films=[content(1)])
    control.client.remove_library("films")
    (group,) = control.client.duplicate_groups()
    assert (group.total_size_bytes, group.reclaimable_bytes) == (20, 10)


def test_a_hash_that_is_recorded_counts_no_file_in_the_trash(control: ControlPlane) -> None:
    fill(control, photos=[content(1), {}], films=[content(1)])
    control.client.remove_library("films")
    with control.database.data.write(SUMMARISE) as conn:
        summarise(conn, [("blake3", digest(1))])
    assert group_sizes(control) == {}


def test_removing_a_library_again_changes_nothing(control: ControlPlane) -> None:
    fill(control, photos=[content(1), content(1)])
    first = control.client.remove_library("photos")
    assert control.client.remove_library("photos") == first


def test_restoring_a_library_that_is_not_in_the_trash_changes_nothing(
    control: ControlPlane,
) -> None:
    fill(control, photos=[content(1), content(1)])
    before = control.client.library("photos")
    assert control.client.restore_library("photos") == before
    assert group_sizes(control) == {key(1): 2}


@pytest.mark.parametrize("verb", ["remove_library", "restore_library"])
def test_a_library_that_does_not_exist_is_not_found(control: ControlPlane, verb: str) -> None:
    error = refusal(getattr(control.client, verb), "nothing")
    assert error.code is StatusCode.NOT_FOUND
    assert "mediaplane library list" in error.text


def test_a_restored_library_is_what_it_was(control: ControlPlane) -> None:
    fill(control, photos=[content(1), {"is_missing": True}, {"error_code": "vanished"}])
    with control.database.control.write() as conn:
        Rows(conn).add("scan_sessions", library_id="photos", status="succeeded", seen_files=3)
    library = control.client.library("photos")
    assert library.last_scan.seen_files == 3
    listing = {"has_error": False, "include_missing": True}
    files = list(control.client.files("photos", **listing))
    assert len(files) == 3
    control.client.remove_library("photos")
    restored = control.client.restore_library("photos")
    restored.update_time.CopyFrom(library.update_time)
    assert restored == library
    assert list(control.client.files("photos", **listing)) == files


def test_a_library_whose_root_is_taken_stays_in_the_trash(control: ControlPlane) -> None:
    control.library("photos", b"/media/a")
    control.client.remove_library("photos")
    control.library("other", b"/media/a")
    error = refusal(control.client.restore_library, "photos")
    assert (error.code, error.metadata) == (
        StatusCode.ALREADY_EXISTS,
        {"library": "libraries/other"},
    )
    assert [found.name for found in control.client.libraries(in_trash=True)] == ["libraries/photos"]


@pytest.mark.parametrize(
    ("kind", "library"), [(SCAN, "libraries/photos"), (HASH, "libraries/photos"), (HASH, "")]
)
@pytest.mark.parametrize("status", ["pending", "running", "retryable"])
def test_a_library_with_work_ahead_cannot_be_removed(
    control: ControlPlane, kind: Any, library: str, status: str
) -> None:
    fill(control, photos=[{}, {}])
    job = control.create(kind, library)
    with control.database.control.write() as conn:
        conn.execute(update(jobs).values(status=status, retry_after=1))
    error = refused(control, "photos")
    assert (error.code, error.metadata) == (StatusCode.FAILED_PRECONDITION, {"job": job.name})
    assert f"mediaplane job cancel {job_id(job)}" in error.text
    assert control.client.library("photos").name == "libraries/photos"
    with control.database.control.write() as conn:
        conn.execute(update(jobs).values(status="cancelled"))
    assert control.client.remove_library("photos").HasField("delete_time")


def test_a_library_can_be_removed_while_another_is_scanned(control: ControlPlane) -> None:
    fill(control, photos=[], films=[])
    control.create(SCAN, "libraries/films")
    assert control.client.remove_library("photos").HasField("delete_time")


def test_a_scan_that_ended_is_not_run_again_for_a_library_in_the_trash(
    control: ControlPlane,
) -> None:
    fill(control, photos=[])
    job = control.create(SCAN, "libraries/photos")
    control.client.cancel_job(job.name)
    control.client.remove_library("photos")
    assert refusal(control.client.retry_job, job.name).code is StatusCode.NOT_FOUND


def test_files_that_wait_for_a_hash_wait_no_longer_in_the_trash(control: ControlPlane) -> None:
    fill(control, photos=[{"needs_hash": True}, content(1)], films=[{"needs_hash": True}])
    control.client.remove_library("photos")
    with control.database.control.read() as conn:
        marked = select(library_files.c.library_id).where(library_files.c.needs_hash)
        assert list(conn.scalars(marked)) == ["films"]
    control.client.restore_library("photos")
    plan_hash(control.database.control)
    with control.database.control.read() as conn:
        assert sorted(conn.scalars(marked)) == ["films", "photos"]


MARKED = {"needs_hash": True}


@pytest.mark.parametrize(
    ("state", "job", "hashes"),
    [
        (content(1), {}, 2),
        (MARKED, {"status": "running", "total_items": 1}, 1),
        (MARKED, {"status": "pending", "total_items": 1}, 1),
        (MARKED, {"status": "retryable", "total_items": 1}, 1),
        # A mark that no plan has looked at says only what is likely.
        (MARKED, {"status": "completed", "total_items": 1}, 2),
    ],
    ids=["hashed", "running", "pending", "retryable", "without plan"],
)
def test_a_file_hashed_by_another_name_meanwhile_is_no_duplicate_of_itself(
    control: ControlPlane, state: dict[str, Any], job: dict[str, Any], hashes: int
) -> None:
    fill(control, photos=[LINKS | content(1), content(2)], films=[LINKS])
    control.client.remove_library("photos")
    with control.database.control.write() as conn:
        films = update(library_files).where(library_files.c.library_id == "films")
        conn.execute(films.values(**state))
        if job:
            Rows(conn).add("jobs", kind="hash", library_id="films", **job)
    control.client.restore_library("photos")
    assert group_sizes(control) == {}
    with control.database.control.read() as conn:
        query = text("SELECT count(*) FROM library_files WHERE content_hash IS NOT NULL")
        assert conn.scalar(query) == hashes


def test_two_who_remove_and_restore_at_once_leave_the_groups_right(control: ControlPlane) -> None:
    fill(control, photos=[content(n // 2) for n in range(400)], films=[content(1), content(500)])
    for _ in range(5):
        _, refusals = at_once(
            lambda: control.client.remove_library("photos"),
            lambda: control.client.restore_library("photos"),
            lambda: control.client.remove_library("photos"),
        )
        assert refusals == []
        is_removed = any(control.client.libraries(in_trash=True))
        assert len(group_sizes(control)) == (0 if is_removed else 200)
