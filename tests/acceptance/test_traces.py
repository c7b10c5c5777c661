"""One trace from the call of a client to the executor of its job, in three processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mediaplane.planes import command_line
from tests.support.commands import Commands


@dataclass(frozen=True)
class Span:
    """What a collector learns of a span."""

    service: str
    name: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes


class Collector(ThreadingHTTPServer):
    """Takes what is exported by OTLP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list[Span] = []

    def take(self, exported: ExportTraceServiceRequest) -> None:
        for source in exported.resource_spans:
            about = {one.key: one.value.string_value for one in source.resource.attributes}
            self.spans += [
                Span(about["service.name"], one.name, one.trace_id, one.span_id, one.parent_span_id)
                for scope in source.scope_spans
                for one in scope.spans
            ]

    def one(self, service: str, name: str) -> Span:
        (found,) = [one for one in self.spans if (one.service, one.name) == (service, name)]
        return found


class Handler(BaseHTTPRequestHandler):
    """Answers one export."""

    server: Collector

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.take(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_call_and_the_run_of_its_job_are_one_trace(
    commands: Commands, collector: Collector
) -> None:
    commands.environment |= {
        "MEDIAPLANE_TRACES": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "NO_PROXY": "127.0.0.1",
    }
    commands.run("job", "probe")  # its planes end with it, and send what they have
    call = "/mediaplane.v1.JobService/CreateJob"
    asked = collector.one("mediaplane", call)
    answered = collector.one("control_plane", call)
    ran = collector.one("data_plane", "run probe")
    assert asked.trace_id == answered.trace_id == ran.trace_id
    assert (answered.parent_id, ran.parent_id) == (asked.span_id, answered.span_id)


def test_nothing_of_it_is_loaded_unless_it_is_asked_for(sqlite_commands: Commands) -> None:
    program = (
        "import sys; import mediaplane.client, control_plane.server, data_plane.server;"
        "from mediaplane import traces\n"
        "with traces.span('nothing'): assert traces.current() is None\n"
        "sys.exit('opentelemetry' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, env=sqlite_commands.environment, check=False).returncode == 0


def test_a_plane_that_lacks_it_says_what_to_install(
    sqlite_commands: Commands, tmp_path: Path
) -> None:
    missing = "raise ImportError('no such module', name='opentelemetry')"
    (tmp_path / "opentelemetry.py").write_text(missing)
    found = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    environment = sqlite_commands.environment | {"MEDIAPLANE_TRACES": "1", "PYTHONPATH": found}
    done = subprocess.run(
        command_line("control_plane"), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "install mediaplane[otel]" in done.stderr
