"""Every call knows whose it is, whatever thread answers it."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from mediaplane.client import Client
from mediaplane.identity import LOCAL, Caller, caller, identify
from mediaplane.protocol.values import Role
from mediaplane.serving import Service, build_server
from mediaplane.v1 import job_service_pb2 as jobs_v1


def test_outside_a_call_the_plane_acts_for_itself() -> None:
    assert caller() == LOCAL
    assert (LOCAL.role, LOCAL.tenant_id) == (Role.ADMIN, None)


def telling() -> Service:
    """A service that identifies each caller by the request and tells who it took them for."""

    def identified(request: Any) -> None:
        assert caller() == LOCAL  # nothing is left behind by an earlier call
        identify(Caller(request.name, Role.VIEWER, None))

    def get(request: Any, _context: Any) -> Any:
        identified(request)
        return jobs_v1.Job(name=caller().name)

    def watch(request: Any, _context: Any) -> Iterator[Any]:
        identify(Caller(request.names[0], Role.VIEWER, None))
        for _ in range(20):
            yield jobs_v1.WatchJobsResponse(job=jobs_v1.Job(name=caller().name))

    handlers: dict[str, Any] = {
        "GetJob": grpc.unary_unary_rpc_method_handler(
            get, jobs_v1.GetJobRequest.FromString, jobs_v1.Job.SerializeToString
        ),
        "WatchJobs": grpc.unary_stream_rpc_method_handler(
            watch,
            jobs_v1.WatchJobsRequest.FromString,
            jobs_v1.WatchJobsResponse.SerializeToString,
        ),
    }
    name = "mediaplane.v1.JobService"
    service = grpc.method_handlers_generic_handler(name, handlers)
    return name, lambda server: server.add_generic_rpc_handlers((service,))


def test_calls_and_streams_at_the_same_time_never_see_each_others_caller(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 's'}"
    server, _states = build_server(address, [telling()], calls=2, streams=2)
    server.start()
    seen: dict[str, set[str]] = {}

    def stream(name: str) -> None:
        with Client(address) as client:
            answers = client.job_service.WatchJobs(jobs_v1.WatchJobsRequest(names=[name]))
            seen[name] = {answer.job.name for answer in answers}

    threads = [threading.Thread(target=stream, args=(f"stream-{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    with Client(address) as client:
        for n in range(50):
            request = jobs_v1.GetJobRequest(name=f"call-{n}")
            assert client.job_service.GetJob(request).name == f"call-{n}"
    for thread in threads:
        thread.join()
    server.stop(5).wait()
    assert seen == {f"stream-{n}": {f"stream-{n}"} for n in range(2)}
