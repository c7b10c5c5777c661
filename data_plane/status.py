"""DataPlaneService: what this worker does, and whether a folder could be a library."""

import errno
import os
from pathlib import Path
from time import time

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from data_plane.file_states import signed64
from data_plane.jail import Jail
from data_plane.leases import Claimed, Held, Leases
from data_plane.roots import Roots
from mediaplane import __version__
from mediaplane.errors import InvalidArgument
from mediaplane.filesystems import filesystem_type
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.v1 import data_plane_service_pb2 as pb
from mediaplane.v1.data_plane_service_pb2_grpc import DataPlaneServiceServicer
from mediaplane.v1.worker_service_pb2 import Worker

_State = pb.ProbeRootResponse.State


class DataPlaneService(DataPlaneServiceServicer):
    """One worker, seen from outside."""

    def __init__(self, leases: Leases, roots: Roots) -> None:
        self._leases = leases
        self._roots = roots
        self._started_at = time()

    def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.ServicerContext
    ) -> pb.DataPlaneStatus:
        held = sorted(self._leases.all(), key=lambda one: one.started_at)
        with Jail(b"/") as jail:
            resolver = jail.resolver
        return pb.DataPlaneStatus(
            worker=self._leases.worker_id,
            state=Worker.STATE_PROCESSING if held else Worker.STATE_IDLE,
            version=__version__,
            start_time=_time(self._started_at),
            running=[_task(one) for one in held],
            resolver=resolver,
            current_time=_time(time()),
        )

    def ProbeRoot(
        self, request: pb.ProbeRootRequest, context: grpc.ServicerContext
    ) -> pb.ProbeRootResponse:
        root = request.root_path
        if not root.startswith(b"/") or b"\0" in root:
            raise InvalidArgument("root_path must be an absolute path.")
        return probe_root(self._roots, root)


def probe_root(roots: Roots, root: bytes) -> pb.ProbeRootResponse:
    """Look at a folder as a library root the way a scan would."""
    try:
        with roots.open_jail(root) as jail:
            descriptor = jail.open_dir()
            try:
                with os.scandir(descriptor) as entries:
                    is_empty = next(entries, None) is None
            finally:
                os.close(descriptor)
            device, inode = jail.identity
            filesystem_id = jail.filesystem_id()
    except OSError as error:
        return _unusable(error)
    return pb.ProbeRootResponse(
        state=_State.STATE_EMPTY if is_empty else _State.STATE_OK,
        device=signed64(device),
        inode=signed64(inode),
        filesystem_id=signed64(filesystem_id),
        filesystem_type=filesystem_type(Path(os.fsdecode(root))),
        message="The folder is empty; is its disk mounted?" if is_empty else "",
    )


def _task(held: Claimed) -> pb.RunningTask:
    job = f"jobs/{held.job_id}" if isinstance(held, Held) else ""
    step = held.machine.name
    if isinstance(held, Held):
        step = held.kind if held.machine is JOBS else "shard"
    return pb.RunningTask(
        job=job,
        item=f"{job}/items/{held.row['id']}" if held.machine is JOB_ITEMS else "",
        step=step,
        start_time=_time(held.started_at),
    )


def _unusable(error: OSError) -> pb.ProbeRootResponse:
    match error.errno:
        case errno.ENOENT:
            state, message = _State.STATE_NOT_FOUND, "There is no such folder."
        case errno.ENOTDIR:
            state, message = _State.STATE_NOT_A_DIRECTORY, "It is not a folder."
        case _:
            state = _State.STATE_NOT_READABLE
            message = f"The worker cannot read the folder: {error.strerror}."
    return pb.ProbeRootResponse(state=state, message=message)


def _time(seconds: float) -> Timestamp:
    return Timestamp(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))
