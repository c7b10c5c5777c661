"""Ports of this machine that nobody listens on."""

import random
import socket

# Below those that the system gives to whoever connects: none of them is gone when it is wanted.
_FIRST, _LAST = 10_000, 30_000


def free_port() -> int:
    """Return a port to listen on, now or again later."""
    while True:
        port = random.randint(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def free_address() -> str:
    """Return an address to listen on."""
    return f"127.0.0.1:{free_port()}"
