"""WorkerService: who works here, and what each worker is told to do."""

import grpc

from control_plane.services import names, paging, wire
from control_plane.store import workers
from mediaplane.errors import FailedPrecondition, InvalidArgument, NotFound
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import WorkerCommand
from mediaplane.v1 import worker_service_pb2 as pb
from mediaplane.v1.worker_service_pb2_grpc import WorkerServiceServicer


class WorkerService(WorkerServiceServicer):
    """The workers of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ListWorkers(
        self, request: pb.ListWorkersRequest, context: grpc.ServicerContext
    ) -> pb.ListWorkersResponse:
        limit = paging.size(request.page_size)
        token = request.page_token
        after = paging.decode(token, {"worker": str})["worker"] if token else ""
        with self._database.read() as conn:
            rows = workers.page(conn, limit=limit + 1, after_id=after)
        page, tail = paging.split(rows, limit)
        return pb.ListWorkersResponse(
            workers=[wire.worker(row) for row in page],
            next_page_token=paging.encode({"worker": tail["worker_id"]}) if tail else "",
        )

    def CommandWorker(
        self, request: pb.CommandWorkerRequest, context: grpc.ServicerContext
    ) -> pb.Worker:
        worker_id = names.worker_id(request.name)
        wanted = wire.from_enum(pb.Worker.Command, request.command)
        if wanted in (None, WorkerCommand.NONE):
            choices = ", ".join(one for one in WorkerCommand if one is not WorkerCommand.NONE)
            raise InvalidArgument(f"command is missing; tell the worker one of: {choices}.")
        with self._database.write() as conn:
            row = workers.command(conn, worker_id, WorkerCommand(wanted))
            is_known = row is not None or workers.exists(conn, worker_id)
        if row is not None:
            return wire.worker(row)
        if is_known:
            raise FailedPrecondition(
                f"The worker {worker_id} is offline and hears nothing; tell one that runs:"
                " `mediaplane worker list` shows them."
            )
        raise NotFound(f"There is no worker {worker_id}; `mediaplane worker list` shows them.")
