"""Every call that changes something is written down, with the change itself."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from sqlalchemy import event, func, select

from control_plane.policy import retention
from mediaplane import operation
from mediaplane.authorization import RULES
from mediaplane.protocol.tables import audit_log, jobs
from mediaplane.protocol.values import Role
from mediaplane.v1 import audit_service_pb2 as audit_v1
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1 import schedule_service_pb2 as schedules_v1
from mediaplane.v1 import worker_service_pb2 as workers_v1
from tests.support.control import PROBE, ControlPlane, refusal
from tests.support.media import add_pictures, requested
from tests.support.rows import Rows
from tests.support.tenancy import settle
from tests.support.tenant_calls import NAMED, SHARED, UNNAMED
from tests.support.tokens import add_token, bearing
from tests.support.waiting import eventually


def entries(control: ControlPlane) -> list[dict[str, Any]]:
    with control.database.control.read() as conn:
        rows = conn.execute(select(audit_log).order_by(audit_log.c.id)).mappings()
        return [dict(row) for row in rows]


def told(control: ControlPlane) -> list[tuple[str, str, str]]:
    return [(row["method"], row["resource"], row["code"]) for row in entries(control)]


def test_a_change_is_written_down_with_who_made_it(control: ControlPlane) -> None:
    token = add_token(control.database, Role.OPERATOR, "north", name="night shift")
    library = control.library("photos")
    job = control.create(PROBE)
    request = jobs_v1.CancelJobRequest(name=job.name)
    with_token = bearing(token)
    control.jobs.CreateJob(
        jobs_v1.CreateJobRequest(job=jobs_v1.Job(kind=PROBE)), metadata=with_token
    )
    control.jobs.CancelJob(request)
    methods = told(control)
    assert methods[:2] == [
        ("LibraryService/CreateLibrary", library, "OK"),
        ("JobService/CreateJob", job.name, "OK"),
    ]
    assert ("JobService/CancelJob", job.name, "OK") in methods
    mine = [row for row in entries(control) if row["caller"] == "night shift"]
    assert [(row["role"], row["tenant_id"], row["peer"]) for row in mine] == [
        ("operator", "north", "token")
    ]
    assert entries(control)[0]["caller"] == "local"


def test_a_call_that_finds_everything_as_it_is_wanted_is_not_written_down(
    control: ControlPlane,
) -> None:
    (file,) = add_pictures(control, "photos", 1)
    assert requested(control, file) == requested(control, file)
    assert told(control) == [("ThumbnailService/RequestThumbnail", file, "OK")]


def test_looking_is_not_written_down(control: ControlPlane) -> None:
    list(control.client.jobs())
    list(control.client.libraries())
    assert entries(control) == []


def test_a_change_and_its_entry_are_one_transaction(control: ControlPlane) -> None:
    engine = control.database.control.engine
    failed: list[str] = []

    def fail(_conn: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if statement.startswith("INSERT INTO audit_log") and not failed:
            failed.append(statement)
            raise RuntimeError("the entry cannot be written")

    event.listen(engine, "before_cursor_execute", fail)
    try:
        error = refusal(
            control.jobs.CreateJob, jobs_v1.CreateJobRequest(job=jobs_v1.Job(kind=PROBE))
        )
    finally:
        event.remove(engine, "before_cursor_execute", fail)
    assert failed, "the fault happened"
    assert error.code is StatusCode.INTERNAL
    with control.database.control.read() as conn:
        assert conn.scalar(select(func.count()).select_from(jobs)) == 0


def test_a_refused_call_is_written_down_soon_after(control: ControlPlane) -> None:
    viewer = bearing(add_token(control.database, Role.VIEWER))
    with pytest.raises(grpc.RpcError):
        control.jobs.CancelJob(jobs_v1.CancelJobRequest(name="jobs/7"), metadata=viewer)
    refusal(control.jobs.CancelJob, jobs_v1.CancelJobRequest(name="jobs/8"))
    refusal(
        control.client.worker_service.CommandWorker,
        workers_v1.CommandWorkerRequest(
            name="workers/gone", command=workers_v1.Worker.COMMAND_PAUSE
        ),
    )
    eventually(
        lambda: (
            sorted(told(control))
            == [
                ("JobService/CancelJob", "jobs/7", "PERMISSION_DENIED"),
                ("JobService/CancelJob", "jobs/8", "NOT_FOUND"),
                ("WorkerService/CommandWorker", "workers/gone", "NOT_FOUND"),
            ]
        )
    )


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../../secret", "jobs/\x1b[2J", "jobs/" + "x" * 500, "a b", "\u202ejobs/1"],
)
def test_what_is_no_name_of_a_resource_is_not_kept(control: ControlPlane, name: str) -> None:
    refusal(control.jobs.CancelJob, jobs_v1.CancelJobRequest(name=name))
    eventually(lambda: told(control) == [("JobService/CancelJob", "", "INVALID_ARGUMENT")])


def test_neither_tokens_nor_paths_stand_in_the_log(control: ControlPlane) -> None:
    control.library("photos", b"/very/secret/place")
    made = operation.create_token(control.client, "console", "viewer")
    kept = repr(entries(control))
    assert made.secret not in kept
    assert "secret/place" not in kept
    assert "tokens/1" in kept


def test_the_log_is_listed_newest_first_page_by_page_and_to_tenants_only_their_own(
    control: ControlPlane,
) -> None:
    with control.database.control.write() as conn:
        for number in range(5):
            Rows(conn).add("audit_log", resource=f"jobs/{number}", tenant_id="north")
        Rows(conn).add("audit_log", resource="jobs/99", tenant_id="south")
    listed = [entry.resource for entry in operation.audit_entries(control.client)]
    assert listed == ["jobs/99", *(f"jobs/{number}" for number in (4, 3, 2, 1, 0))]
    north = bearing(add_token(control.database, Role.ADMIN, "north"))
    seen: list[str] = []
    token = ""
    while not seen or token:
        request = audit_v1.ListAuditEntriesRequest(page_size=2, page_token=token)
        page = control.client.audit_service.ListAuditEntries(request, metadata=north)
        seen += [entry.resource for entry in page.entries]
        token = page.next_page_token
    assert seen == [f"jobs/{number}" for number in (4, 3, 2, 1, 0)]


def test_old_entries_are_forgotten_and_younger_ones_kept(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        now = Rows(conn).now()
        old = Rows(conn).add("audit_log", called_at=now - 3 * 24 * 3_600_000)
        young = Rows(conn).add("audit_log", called_at=now)
    assert not retention.forget_calls(control.database.control, 0)
    assert not retention.forget_calls(control.database.control, 2)
    assert [row["id"] for row in entries(control)] == [young]
    assert old != young


def test_a_repeated_request_is_another_call(control: ControlPlane) -> None:
    first = control.create(PROBE, request_id="once")
    again = control.create(PROBE, request_id="once")
    assert first.name == again.name
    assert told(control) == [("JobService/CreateJob", first.name, "OK")] * 2


def test_every_change_names_what_it_is_about(control: ControlPlane, tmp_path: Path) -> None:
    tenant = settle(control.database.control, "north", tmp_path)
    with control.database.control.write() as conn:
        Rows(conn).add(
            "worker_status", worker_id="one", state="idle", heartbeat_at=Rows(conn).now()
        )
    for called, builds in (UNNAMED | SHARED | NAMED).items():
        if RULES[f"/mediaplane.v1.{called}"].changes:
            service, method = called.split("/")
            stub = getattr(control.client, f"{service.removesuffix('Service').lower()}_service")
            for build in builds:
                with suppress(grpc.RpcError):  # not everything can be done after everything else
                    getattr(stub, method)(build(tenant))
    done = {method: resource for method, resource, code in told(control) if code == "OK"}
    assert [method for method, resource in done.items() if not resource] == []
    assert done["ScheduleService/CreateSchedule"] == "schedules/new"
    assert done["JobService/BatchCreateJobs"].startswith("jobs/")
    assert done["ThumbnailService/ScheduleCleanup"].startswith("thumbnailCleanups/")


def test_a_batch_of_jobs_is_named_by_its_first_and_its_last(control: ControlPlane) -> None:
    one = jobs_v1.CreateJobRequest(job=jobs_v1.Job(kind=PROBE))
    request = jobs_v1.BatchCreateJobsRequest(requests=[one] * 3)
    names = [job.name for job in control.jobs.BatchCreateJobs(request).jobs]
    first, last = names[0], names[-1].removeprefix("jobs/")
    assert told(control) == [("JobService/BatchCreateJobs", f"{first}..{last}", "OK")]


def test_a_schedule_that_may_not_be_created_is_named_too(control: ControlPlane) -> None:
    viewer = bearing(add_token(control.database, Role.VIEWER))
    request = schedules_v1.CreateScheduleRequest(schedule_id="nightly")
    with pytest.raises(grpc.RpcError):
        control.client.schedule_service.CreateSchedule(request, metadata=viewer)
    refused = ("ScheduleService/CreateSchedule", "schedules/nightly", "PERMISSION_DENIED")
    eventually(lambda: told(control) == [refused])


def test_a_change_of_a_library_names_it(control: ControlPlane) -> None:
    library = control.library("photos")
    change = libraries_v1.UpdateLibraryRequest(
        library=libraries_v1.Library(name=library, display_name="Photos")
    )
    change.update_mask.paths.append("display_name")
    control.libraries.UpdateLibrary(change)
    control.client.remove_library("photos")
    assert told(control)[1:] == [
        ("LibraryService/UpdateLibrary", library, "OK"),
        ("LibraryService/DeleteLibrary", library, "OK"),
    ]
