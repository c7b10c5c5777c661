"""Finds out who makes a call: by its token, its certificate, or the socket it came through."""

import re
from collections.abc import Mapping
from typing import cast

import grpc

from mediaplane.errors import Unauthenticated
from mediaplane.identity import LOCAL, Caller
from mediaplane.protocol.values import Peer, Role
from mediaplane.tokens import Tokens

# What a certificate says of its holder, as a URI among its alternative names.
_HOLDER = re.compile(
    rf"urn:mediaplane:({'|'.join(Role)})(?::([a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])?))?"
)


def authenticate(context: grpc.ServicerContext, tokens: Tokens | None) -> Caller:
    """Return who makes a call. A token decides wherever there is one."""
    token = _bearer(context)
    if token is not None:
        if tokens is None:
            raise Unauthenticated("This server knows no tokens; call it without one.")
        return tokens.caller(token)
    # Its type stub takes each for one value; there are several of some.
    facts = cast(Mapping[str, list[bytes]], context.auth_context())
    if facts.get("transport_security_type") != [b"ssl"]:
        # Not encrypted, so it came through a socket that only this machine reaches.
        return LOCAL
    if "x509_pem_cert" in facts:
        return _holder(facts)
    raise Unauthenticated(
        "The call carries no token; set MEDIAPLANE_TOKEN, or send the metadata"
        " `authorization: Bearer mp_...`."
    )


def _bearer(context: grpc.ServicerContext) -> str | None:
    given = [value for key, value in context.invocation_metadata() if key == "authorization"]
    if not given:
        return None
    scheme, _, token = str(given[0]).partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer":
        raise Unauthenticated(
            "The metadata `authorization` is not understood; send it once, as `Bearer mp_...`."
        )
    return token.strip()


def _holder(facts: Mapping[str, list[bytes]]) -> Caller:
    names = [
        name.decode("utf-8", "replace") for name in facts.get("x509_subject_alternative_name", ())
    ]
    found = [match for name in names if (match := _HOLDER.fullmatch(name))]
    if len(found) != 1:
        raise Unauthenticated(
            "The client certificate does not say what its holder may do: it needs exactly one"
            " alternative name such as URI:urn:mediaplane:operator, or"
            " URI:urn:mediaplane:operator:TENANT for one tenant."
        )
    common = facts.get("x509_common_name", [b""])[0].decode("utf-8", "replace")
    name = "".join(char for char in common if char.isprintable())[:100]
    return Caller(name or "certificate", Role(found[0][1]), found[0][2], Peer.CERTIFICATE)
