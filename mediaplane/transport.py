"""Encrypts what leaves this machine: the certificate of a server, renewed while it runs."""

import logging
import os
import ssl
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import grpc

from mediaplane.addresses import is_local, is_unix
from mediaplane.errors import UnusableSettings
from mediaplane.settings import setting, variable

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TransportSettings:
    """What both planes need to be reached from other machines."""

    tls_cert: str = setting("", "File with this server's certificate chain (PEM); none when empty.")
    tls_key: str = setting("", "File with the private key of that certificate (PEM).")
    tls_client_ca: str = setting(
        "", "File with the authorities (PEM) that every client's certificate must come from."
    )


class Certificates:
    """The files of a server's certificate, read again for each new connection."""

    def __init__(self, settings: TransportSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._complaint = ""
        self._content = _checked(_read(settings))

    def current(self) -> grpc.ServerCertificateConfiguration:
        """Return the certificate as it is."""
        return grpc.ssl_server_certificate_configuration(
            [(self._content["tls_key"], self._content["tls_cert"])],
            root_certificates=self._content.get("tls_client_ca"),
        )

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the certificate when it is a new one; None to go on with the old one."""
        with self._lock:
            try:
                content = _read(self._settings)
                if content == self._content:
                    return None
                self._content = _checked(content)
            except UnusableSettings as error:
                if self._complaint != str(error):
                    self._complaint = str(error)
                    log.error("The certificate is not renewed, the old one stays: %s", error)  # noqa: TRY400 - a trace would add nothing
                return None
            self._complaint = ""
            log.info("The certificate has been renewed")
            return self.current()


def credentials(address: str, settings: TransportSettings) -> grpc.ServerCredentials | None:
    """Return how to encrypt at an address; None where it is open to this machine alone."""
    if is_unix(address):
        return None
    if not settings.tls_cert:
        if is_local(address):
            return None
        raise UnusableSettings(
            f"Refusing to listen on {address}: beyond this machine, calls need encryption and"
            " authentication. Set MEDIAPLANE_TLS_CERT and MEDIAPLANE_TLS_KEY, and give callers"
            " tokens (`mediaplane token create`) or certificates (MEDIAPLANE_TLS_CLIENT_CA); or"
            " use a unix: socket or a loopback address."
        )
    certificates = Certificates(settings)
    return grpc.dynamic_ssl_server_credentials(
        certificates.current(),
        cast(Any, certificates.renewed),  # None is legal, and its type stub does not say so
        require_client_authentication=bool(settings.tls_client_ca),
    )


def _read(settings: TransportSettings) -> dict[str, bytes]:
    """Return the content of each file, by the name of its setting."""
    content = {}
    for name in ("tls_cert", "tls_key", "tls_client_ca"):
        path = getattr(settings, name)
        if not path and name == "tls_client_ca":
            continue
        try:
            with open(path, "rb") as file:
                content[name] = file.read()
        except OSError as error:
            raise UnusableSettings(
                f"The file of {variable(name)} cannot be read ({error.strerror}); check that it"
                " exists and that this process may read it."
            ) from None
    return content


def _checked(content: dict[str, bytes]) -> dict[str, bytes]:
    """Return what gRPC can use: it would itself say so only in the middle of a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        with ExitStack() as stack:
            certificate, key = (_held(stack, content, name) for name in ("tls_cert", "tls_key"))
            # A key that is itself encrypted must not make the server ask at a terminal.
            context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError, ValueError):
        raise UnusableSettings(
            "MEDIAPLANE_TLS_CERT and MEDIAPLANE_TLS_KEY do not hold a certificate and its key in"
            " PEM, without a passphrase; give a pair that belongs together."
        ) from None
    try:
        if "tls_client_ca" in content:
            context.load_verify_locations(cadata=content["tls_client_ca"].decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise UnusableSettings(
            "MEDIAPLANE_TLS_CLIENT_CA does not hold certificates in PEM; give the authorities that"
            " sign the clients' certificates."
        ) from None
    return content


def _held(stack: ExitStack, content: Mapping[str, bytes], name: str) -> str:
    """Return a path to bytes that are in memory alone: Python checks a key only in a file."""
    descriptor = os.memfd_create(name)
    stack.callback(os.close, descriptor)
    os.write(descriptor, content[name])
    return f"/proc/self/fd/{descriptor}"
