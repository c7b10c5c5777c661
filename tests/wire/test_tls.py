"""Beyond this machine calls are encrypted, callers are known, and certificates can be renewed."""

import logging
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from mediaplane.client import open_channel
from mediaplane.credentials import NO_CREDENTIALS, Credentials
from mediaplane.errors import UnusableSettings
from mediaplane.identity import Caller, caller
from mediaplane.protocol.values import Peer, Role
from mediaplane.serving import Service, build_server
from mediaplane.tokens import Tokens
from mediaplane.transport import TransportSettings
from mediaplane.v1 import job_service_pb2 as jobs_v1
from mediaplane.v1.job_service_pb2_grpc import JobServiceStub
from tests.support.certificates import Authority
from tests.support.databases import Copies, Databases, opened
from tests.support.ports import free_port
from tests.support.tokens import add_token
from tests.support.waiting import PATIENCE_SECONDS

GET = jobs_v1.GetJobRequest(name="jobs/1")


class Serving:
    """A server on a port, encrypted, whose one method tells who called it."""

    def __init__(self, directory: Path, database: Databases) -> None:
        self.authority = Authority(directory / "ca")
        self.database = database
        self.directory = directory
        self.certificate, self.key = directory / "server.pem", directory / "server.key"
        self.present("first")
        self.callers: list[Caller] = []
        self.address = ""
        self.local_address = f"unix:{directory / 'local.sock'}"

    def present(self, name: str) -> None:
        """Put a new certificate in the place of the server's."""
        certificate, key = self.authority.issue(name)
        shutil.copy(key, self.key)
        shutil.copy(certificate, self.certificate)

    @contextmanager
    def running(self, host: str = "127.0.0.1", **settings: str) -> Iterator["Serving"]:
        chosen = {"tls_cert": str(self.certificate), "tls_key": str(self.key)} | settings
        port = free_port()
        self.address = f"localhost:{port}"
        server, _ = build_server(
            f"{host}:{port}",
            [self._service()],
            calls=4,
            streams=2,
            settings=TransportSettings(**chosen),
            tokens=Tokens(self.database.control),
            local_address=self.local_address,
        )
        server.start()
        try:
            yield self
        finally:
            server.stop(0).wait()

    def _service(self) -> Service:
        def get(_request: Any, _context: Any) -> Any:
            self.callers.append(caller())
            return jobs_v1.Job()

        handler = grpc.unary_unary_rpc_method_handler(
            get, jobs_v1.GetJobRequest.FromString, jobs_v1.Job.SerializeToString
        )
        name = "mediaplane.v1.JobService"
        service = grpc.method_handlers_generic_handler(name, {"GetJob": handler})
        return name, lambda server: server.add_generic_rpc_handlers((service,))

    def known(self, **shown: Any) -> Credentials:
        return Credentials(authorities=self.authority.certificate.read_bytes(), **shown)

    def call(self, credentials: Credentials, address: str | None = None) -> Caller:
        """Call it and return whom it took the caller for."""
        with open_channel(address or self.address, credentials) as channel:
            JobServiceStub(channel).GetJob(GET, timeout=PATIENCE_SECONDS)
        return self.callers[-1]

    def code(self, credentials: Credentials, address: str | None = None) -> StatusCode:
        try:
            self.call(credentials, address)
        except grpc.RpcError as error:
            return error.code()
        return StatusCode.OK

    def presented(self) -> str:
        """The name in the certificate that a new connection sees."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.set_alpn_protocols(["h2"])
        host, _, port = self.address.partition(":")
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            subject: Any = (secure.getpeercert() or {})["subject"]
        return str(dict(pair for part in subject for pair in part)["commonName"])


@pytest.fixture
def site(sqlite_template: Copies, tmp_path: Path) -> Iterator[Serving]:
    """What goes over the wire does not depend on the kind of database."""
    with sqlite_template() as url, opened(url) as database:
        yield Serving(tmp_path, database)


def test_a_call_with_a_token_is_let_in_and_one_without_is_not(site: Serving) -> None:
    token = add_token(site.database, Role.VIEWER, "north", name="console")
    with site.running("0.0.0.0"):
        known = site.call(site.known(token=token))
        assert known == Caller("console", Role.VIEWER, "north", Peer.TOKEN)
        assert site.code(site.known()) is StatusCode.UNAUTHENTICATED
        assert site.code(site.known(token="mp_" + "A" * 43)) is StatusCode.UNAUTHENTICATED


def test_commands_on_the_same_machine_need_neither_tls_nor_token(site: Serving) -> None:
    with site.running("0.0.0.0"):
        known = site.call(NO_CREDENTIALS, site.local_address)
        assert (known.role, known.tenant_id, known.peer) == (Role.ADMIN, None, Peer.LOCAL)
        # The same machine through the port is a stranger like any other.
        assert site.code(site.known()) is StatusCode.UNAUTHENTICATED


def test_health_is_told_to_whoever_asks(site: Serving) -> None:
    with site.running(), open_channel(site.address, site.known()) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_what_can_be_called_is_told_to_known_callers_alone(site: Serving) -> None:
    token = add_token(site.database, Role.WORKER)
    codes: dict[str, Any] = {}
    with site.running():
        for name, shown in {"known": site.known(token=token), "unknown": site.known()}.items():
            with open_channel(site.address, shown) as channel:
                stub: Any = ServerReflectionStub(channel)  # its type stub lacks the methods
                request = ServerReflectionRequest(list_services="")
                asked = stub.ServerReflectionInfo(iter([request]), timeout=PATIENCE_SECONDS)
                try:
                    codes[name] = bool(next(asked).list_services_response.service)
                except grpc.RpcError as error:
                    codes[name] = error.code()
    assert codes == {"known": True, "unknown": StatusCode.UNAUTHENTICATED}


def test_a_server_whose_certificate_comes_from_elsewhere_is_not_spoken_to(
    site: Serving, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other").certificate.read_bytes()
    token = add_token(site.database)
    with site.running():
        assert site.code(Credentials(token, authorities=other)) is StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("urn:mediaplane:operator", (Role.OPERATOR, None)),
        ("urn:mediaplane:viewer:north", (Role.VIEWER, "north")),
    ],
)
def test_a_certificate_says_what_its_holder_may_do(
    site: Serving, name: str, expected: tuple[Role, str | None]
) -> None:
    certificate, key = site.authority.issue("night shift", f"URI:{name}")
    shown = site.known(certificate=certificate.read_bytes(), key=key.read_bytes())
    with site.running("0.0.0.0", tls_client_ca=str(site.authority.certificate)):
        assert site.call(shown) == Caller("night shift", *expected, Peer.CERTIFICATE)
        assert site.code(site.known()) is StatusCode.UNAVAILABLE, "no certificate, no connection"


@pytest.mark.parametrize(
    "names",
    [
        ["DNS:localhost"],
        ["URI:urn:mediaplane:emperor"],
        ["URI:urn:mediaplane:viewer", "URI:urn:mediaplane:admin"],
        ["URI:urn:mediaplane:viewer:North"],
    ],
)
def test_a_certificate_that_does_not_say_what_its_holder_may_do_is_refused(
    site: Serving, names: list[str]
) -> None:
    certificate, key = site.authority.issue("someone", *names)
    shown = site.known(certificate=certificate.read_bytes(), key=key.read_bytes())
    with site.running(tls_client_ca=str(site.authority.certificate)):
        assert site.code(shown) is StatusCode.UNAUTHENTICATED


def test_a_new_certificate_is_presented_without_a_restart(site: Serving) -> None:
    with site.running():
        assert site.presented() == "first"
        site.present("second")
        assert site.presented() == "second"


def test_a_broken_certificate_leaves_the_old_one_in_use_and_is_logged_once(
    site: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    with site.running():
        site.certificate.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n")
        assert [site.presented(), site.presented()] == ["first", "first"]
        said = [one for one in caplog.records if "not renewed" in one.getMessage()]
        assert [one.levelno for one in said] == [logging.ERROR]
        assert str(site.directory) not in said[0].getMessage()
        site.present("second")
        assert site.presented() == "second"


def test_a_key_that_does_not_belong_to_the_certificate_stops_the_start(site: Serving) -> None:
    _, other = site.authority.issue("other")
    with (
        pytest.raises(UnusableSettings, match="pair that belongs together"),
        site.running(tls_key=str(other)),
    ):
        pass


def test_a_missing_file_stops_the_start_with_the_name_of_its_setting(site: Serving) -> None:
    for setting in ("tls_cert", "tls_key", "tls_client_ca"):
        missing = {setting: str(site.directory / "missing.pem")}
        with (
            pytest.raises(UnusableSettings, match=f"MEDIAPLANE_{setting.upper()} cannot be read"),
            site.running(**missing),
        ):
            pass


def test_a_token_never_leaves_this_machine_in_the_clear() -> None:
    token = "mp_" + "S" * 43
    with socket.create_server(("0.0.0.0", 0)) as listener:
        listener.settimeout(20)
        # An address of this machine that is not loopback: for the client, any other machine.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            host = probe.getsockname()[0]
        address = f"{host}:{listener.getsockname()[1]}"
        with open_channel(address, Credentials(token)) as channel:
            call = JobServiceStub(channel).GetJob.future(GET, timeout=PATIENCE_SECONDS)
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(20)
                greeting = connection.recv(4096)
            call.cancel()
    assert greeting[0] == 0x16, "it begins with a TLS handshake"
    assert token.encode() not in greeting
