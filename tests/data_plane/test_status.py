"""What a worker says of itself, and of a folder that could become a library."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import grpc
import pytest
from grpc import StatusCode

from data_plane.file_states import signed64
from data_plane.leases import Leases
from data_plane.roots import Roots
from data_plane.status import DataPlaneService
from mediaplane import __version__
from mediaplane.protocol import gate
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.values import JobKind
from mediaplane.v1 import data_plane_service_pb2 as pb
from mediaplane.v1.worker_service_pb2 import Worker
from tests.support import worker
from tests.support.control import refusal
from tests.support.data import DataPlane, serving_data
from tests.support.databases import Databases
from tests.support.privileges import as_nobody, public_folder
from tests.support.rows import Rows

State = pb.ProbeRootResponse.State


@pytest.fixture
def plane(database: Databases, tmp_path: Path) -> Iterator[DataPlane]:
    with serving_data(database, tmp_path) as serving:
        yield serving


def status(plane: DataPlane) -> pb.DataPlaneStatus:
    return plane.status.GetStatus(pb.GetStatusRequest())


def probed(plane: DataPlane, root: Path) -> pb.ProbeRootResponse:
    answer = plane.status.ProbeRoot(pb.ProbeRootRequest(root_path=bytes(root)))
    assert str(root.parent) not in answer.message
    return answer


def claimed_item(data: Database) -> Row:
    with data.write(JOB_ITEMS.step("claim").path) as conn:
        (row,) = gate.claim(conn, JOB_ITEMS, "claim", worker.WORKER, 60, 1)
    return row


def test_a_worker_without_work_is_idle(plane: DataPlane) -> None:
    told = status(plane)
    assert (told.worker, told.version) == ("worker-1", __version__)
    assert told.state == Worker.STATE_IDLE
    assert not told.running
    assert told.resolver in ("openat2", "walk")
    assert 0 <= time.time() - told.start_time.ToMicroseconds() / 1e6 < 60


def test_a_worker_shows_the_work_in_hand_longest_running_first(
    plane: DataPlane, database: Databases
) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        rows.add("jobs", kind="scan", library_id=rows.add("libraries"))
        for _ in range(7):
            rows.add("jobs")
        item = rows.add("job_items", job_id=rows.add("jobs", status="running"))
    with ExitStack() as stack:
        jobs = [worker.claim(database.data) for _ in range(8)]
        for job in jobs:
            stack.enter_context(plane.leases.hold(JOBS, JobKind(job["kind"]), [job]))
        shard = [claimed_item(database.data)]
        (held,) = stack.enter_context(plane.leases.hold(JOB_ITEMS, JobKind.HASH, shard))
        told = status(plane)
    assert told.state == Worker.STATE_PROCESSING
    *whole, part = told.running
    assert [(task.job, task.item, task.step) for task in whole] == [
        (f"jobs/{job['id']}", "", job["kind"]) for job in jobs
    ]
    assert {task.step for task in whole} == {"scan", "delete"}
    assert part.job == f"jobs/{held.job_id}"
    assert (part.item, part.step) == (f"{part.job}/items/{item}", "shard")
    times = [task.start_time.ToNanoseconds() for task in told.running]
    assert times == sorted(times)
    assert status(plane).state == Worker.STATE_IDLE


def test_a_folder_with_something_in_it_can_be_a_library(plane: DataPlane, tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9\n")
    (root / "something").mkdir(parents=True)
    answer = probed(plane, root)
    info = os.stat(root)
    assert (answer.state, answer.message) == (State.STATE_OK, "")
    assert (answer.device, answer.inode) == (signed64(info.st_dev), signed64(info.st_ino))
    assert answer.filesystem_type


def test_a_folder_that_cannot_be_a_library_is_an_answer_with_its_reason(
    plane: DataPlane, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    expected = {
        "empty": State.STATE_EMPTY,
        "nothing": State.STATE_NOT_FOUND,
        "nothing/below": State.STATE_NOT_FOUND,
        "file": State.STATE_NOT_A_DIRECTORY,
        "file/below": State.STATE_NOT_A_DIRECTORY,
        "loop": State.STATE_NOT_READABLE,
        "x" * 300: State.STATE_NOT_READABLE,
    }
    answers = {name: probed(plane, tmp_path / name) for name in expected}
    assert {name: answer.state for name, answer in answers.items()} == expected
    assert all(answer.message for answer in answers.values())
    found = {name for name, answer in answers.items() if answer.inode or answer.device}
    assert found == {"empty"}


def test_a_folder_outside_the_roots_of_the_worker_is_not_looked_at(
    database: Databases, tmp_path: Path
) -> None:
    for name in ("allowed/inside", "outside/inside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "allowed/link").symlink_to(tmp_path / "outside")
    with serving_data(database, tmp_path, roots=str(tmp_path / "allowed")) as plane:
        assert probed(plane, tmp_path / "allowed").state == State.STATE_OK
        for name in ("outside", "allowed/link", "allowed/.."):
            answer = probed(plane, tmp_path / name)
            assert answer.state == State.STATE_NOT_READABLE
            assert "MEDIAPLANE_ROOTS" in answer.message
            assert not answer.inode


def test_a_folder_that_the_worker_may_not_list_is_not_readable() -> None:
    # Without a server: only a child process without threads can give up the rights of root.
    service = DataPlaneService(Leases("worker-1"), Roots(""))
    context = cast(grpc.ServicerContext, None)

    def look(root: Path) -> tuple[int, str]:
        answer = service.ProbeRoot(pb.ProbeRootRequest(root_path=bytes(root)), context)
        return answer.state, answer.message

    with public_folder() as folder:
        (folder / "closed/inside").mkdir(parents=True)
        assert as_nobody(lambda: look(folder))[0] == State.STATE_OK
        (folder / "closed").chmod(0)
        for root in (folder / "closed", folder / "closed/inside"):
            state, message = as_nobody(lambda root=root: look(root))  # type: ignore[misc]
            assert state == State.STATE_NOT_READABLE
            assert "Permission denied" in message
            assert str(folder) not in message


def test_a_root_that_is_no_absolute_path_is_refused(plane: DataPlane) -> None:
    for root in (b"", b"relative", b"../up", b"/nul\0byte", b"\xff"):
        told = refusal(plane.status.ProbeRoot, pb.ProbeRootRequest(root_path=root))
        assert (told.code, told.reason) == (StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
