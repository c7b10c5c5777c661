"""What a client shows of itself, and how it reaches a server: encrypted beyond this machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, cast

import grpc

from mediaplane.addresses import is_local
from mediaplane.errors import UnusableSettings


@dataclass(frozen=True)
class Credentials:
    """Who the client is. All may be missing: on this machine nobody asks."""

    # Kept out of what is printed of it.
    token: str = field(default="", repr=False)
    # The authorities that the server's certificate may come from, in PEM; None: the system's.
    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read MEDIAPLANE_TOKEN and MEDIAPLANE_TLS_*, and the files they name."""
        token = environ.get("MEDIAPLANE_TOKEN", "")
        if not token:
            token = (_content(environ, "MEDIAPLANE_TOKEN_FILE") or b"").decode("ascii", "replace")
        certificate = _content(environ, "MEDIAPLANE_TLS_CLIENT_CERT")
        key = _content(environ, "MEDIAPLANE_TLS_CLIENT_KEY")
        if (certificate is None) is not (key is None):
            raise UnusableSettings(
                "MEDIAPLANE_TLS_CLIENT_CERT and MEDIAPLANE_TLS_CLIENT_KEY belong together; set"
                " both or neither."
            )
        token = token.strip()
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise UnusableSettings(
                "MEDIAPLANE_TOKEN, or the file of MEDIAPLANE_TOKEN_FILE, does not hold a token;"
                " it is one word that begins with mp_."
            )
        return cls(token, _content(environ, "MEDIAPLANE_TLS_CA"), certificate, key)


NO_CREDENTIALS = Credentials()


def connect(address: str, credentials: Credentials, options: list[tuple[str, Any]]) -> grpc.Channel:
    """Return a channel to an address. Beyond this machine it is always encrypted.

    So no token ever leaves this machine in the clear, whatever answers at the address.
    """
    if is_local(address) and credentials.authorities is None:
        channel = grpc.insecure_channel(address, options=options)
        if not credentials.token:
            return channel
        return grpc.intercept_channel(channel, _Bearer(credentials.token))
    encrypted = grpc.ssl_channel_credentials(
        credentials.authorities, credentials.key, credentials.certificate
    )
    if credentials.token:
        bearer = grpc.access_token_call_credentials(credentials.token)
        encrypted = grpc.composite_channel_credentials(encrypted, bearer)
    return grpc.secure_channel(address, encrypted, options=options)


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: list[tuple[str, str | bytes]]
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None
    compression: Any


class _Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Adds a token to calls on this machine: gRPC's own way to do so demands encryption."""

    def __init__(self, token: str) -> None:
        self._word = f"Bearer {token}"

    def intercept_unary_unary(
        self, continuation: Callable[..., Any], client_call_details: Any, request: Any
    ) -> Any:
        """Add the token."""
        return continuation(self._with_token(client_call_details), request)

    intercept_unary_stream = intercept_unary_unary

    def _with_token(self, details: Any) -> grpc.ClientCallDetails:
        metadata = [*(details.metadata or ()), ("authorization", self._word)]
        changed = _Details(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )
        return cast(grpc.ClientCallDetails, changed)


def _content(environ: Mapping[str, str], variable: str) -> bytes | None:
    """Return the file that a variable names; None when it names none."""
    path = environ.get(variable)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UnusableSettings(
            f"The file of {variable}, {path}, cannot be read ({error.strerror})."
        ) from None
