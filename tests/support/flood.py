"""Calls a control plane as fast as a process can, and prints how the calls ended.

Run as a program: `python -m tests.support.flood ADDRESS SECONDS`.
"""

import json
import sys
import time
from collections import Counter

import grpc

from mediaplane.client import open_channel
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1.job_service_pb2_grpc import JobServiceStub

AT_ONCE = 200


def flood(address: str, seconds: float) -> Counter[str]:
    """Make many calls at a time until the time is up; return how often each code came back."""
    codes: Counter[str] = Counter()
    request = jobs_v1.CreateJobRequest(job=jobs_v1.Job(kind=jobs_v1.JOB_KIND_PROBE))
    end = time.monotonic() + seconds
    with open_channel(address) as channel:
        jobs = JobServiceStub(channel)
        while time.monotonic() < end:
            calls = [jobs.CreateJob.future(request, timeout=300) for _ in range(AT_ONCE)]
            for call in calls:
                error = call.exception()
                codes[error.code().name if isinstance(error, grpc.RpcError) else "OK"] += 1
    return codes


if __name__ == "__main__":
    sys.stdout.write(json.dumps(flood(sys.argv[1], float(sys.argv[2]))))
