"""Control planes are killed under load, and two of them at once do nothing twice."""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from random import Random

import grpc

from mediaplane.client import Client
from mediaplane.v1 import job_service_pb2 as jobs_v1
from tests.faults.site import MAX_ATTEMPTS, Site
from tests.support.control import job_id
from tests.support.waiting import eventually

RESTARTS = 4
KILLS = 4


class Caller(threading.Thread):
    """Asks for jobs until it is told to stop, and asks again when there was no answer."""

    def __init__(self, address: str, stop: threading.Event, name: str) -> None:
        super().__init__(name=name)
        self.address = address
        self.told_to_stop = stop
        self.acknowledged: dict[str, int] = {}  # request id → job
        self.unanswered = 0

    def run(self) -> None:
        with Client(self.address) as client:
            for number in count():
                if self.told_to_stop.is_set():
                    return
                self.ask(client, f"{self.name}-{number}")
                time.sleep(0.005)  # a load, not a flood: the workers have to keep up

    def ask(self, client: Client, request_id: str) -> None:
        probe = jobs_v1.Probe(scratch_bytes=1000)
        job = jobs_v1.Job(kind=jobs_v1.JOB_KIND_PROBE, max_attempts=MAX_ATTEMPTS, probe=probe)
        request = jobs_v1.CreateJobRequest(job=job, request_id=request_id)
        while request_id not in self.acknowledged:
            try:
                answer = client.job_service.CreateJob(request, timeout=600, wait_for_ready=True)
            except grpc.RpcError as error:
                # A call that comes in while a server stops may be cancelled by gRPC itself.
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise
                self.unanswered += 1
            else:
                self.acknowledged[request_id] = job_id(answer)


def test_a_control_plane_killed_under_load_keeps_every_job_it_acknowledged(
    site: Site, chance: Random
) -> None:
    stop, worker = threading.Event(), site.start_worker()
    address, plane = site.start_plane("control_plane", 0)
    callers = [Caller(address, stop, name) for name in ("one", "two", "three")]
    with calling(callers, stop):
        # A kill that no call was waiting under would prove little, and does not count.
        while sum(caller.unanswered for caller in callers) < RESTARTS:
            before = asked(callers)
            eventually(lambda: asked(callers) > before + 30)  # noqa: B023 - called at once
            time.sleep(chance.uniform(0, 0.05))  # any moment is a good one
            plane.kill()
            assert plane.wait() == -signal.SIGKILL
            _address, plane = site.start_plane("control_plane", 0)
    acknowledged = [job for caller in callers for job in caller.acknowledged.values()]
    site.expected = dict.fromkeys(acknowledged, "completed")
    assert len(site.expected) == len(acknowledged)
    site.wait_until_done()
    assert site.count("completed") == len(acknowledged)  # asked for again, and not there twice
    stop_control_plane(plane)
    site.check([worker])


def test_two_control_planes_at_once_do_nothing_twice(site: Site) -> None:
    stop, worker = threading.Event(), site.start_worker()
    planes = [site.start_plane("control_plane", number) for number in range(2)]
    # Both are asked for the same, at about the same time.
    callers = [Caller(address, stop, "same") for address, _plane in planes]
    site.admit_cut(30, seconds=0.01)
    with calling(callers, stop):
        for _ in range(KILLS):
            before = min(len(caller.acknowledged) for caller in callers)
            eventually(lambda: all(len(one.acknowledged) > before + 8 for one in callers))  # noqa: B023
            worker = kill_at_work(site, worker)  # leases for both of them to find expired
    assert len(callers[0].acknowledged.keys() & callers[1].acknowledged.keys()) > 30
    acknowledged = callers[0].acknowledged | callers[1].acknowledged
    for caller in callers:
        assert caller.acknowledged.items() <= acknowledged.items()
    site.expected |= dict.fromkeys(acknowledged.values(), "completed")
    site.wait_until_done()
    assert site.count("completed") == len(site.expected)
    assert site.repetitions() >= KILLS
    for _address, plane in planes:
        stop_control_plane(plane)
    site.check([worker])


def kill_at_work(site: Site, worker: int) -> int:
    """Kill a worker with a job in hand, and return the one in its place."""
    is_in_hand = False
    while not is_in_hand:
        (slow,) = site.admit(1, seconds=1.0)
        eventually(lambda: site.status(slow) != "pending")  # noqa: B023 - called at once
        assert site.zygote.kill(worker)
        is_in_hand = site.status(slow) != "completed"
        worker = site.start_worker()
    return worker


def stop_control_plane(plane: subprocess.Popen[bytes]) -> None:
    plane.terminate()
    assert plane.wait() == 0


@contextmanager
def calling(callers: Sequence[Caller], stop: threading.Event) -> Iterator[None]:
    """Have callers ask for the duration; each ends with an answer."""
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        stop.set()
        for caller in callers:
            caller.join()


def asked(callers: Sequence[Caller]) -> int:
    return sum(len(caller.acknowledged) for caller in callers)
