"""Messages between the data plane and a decoder: JSON behind its length, over a socket.

Only the decoder takes descriptors: a plain `recv` has the kernel drop those that are sent to it,
so that a decoder gone wrong can neither open files here nor use up our descriptors.
"""

import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

from data_plane.decoders.messages import Malformed

MAX_BYTES = 1 << 20

_LENGTH = struct.Struct("!I")
_MAX_DESCRIPTORS = 64
_CHUNK_BYTES = 1 << 16


def send(line: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message, and descriptors to go with it."""
    body = json.dumps(message).encode()
    # With the length alone, which is sent whole: they arrive with the first byte.
    socket.send_fds(line, [_LENGTH.pack(len(body))], list(descriptors))
    line.sendall(body)


def receive(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Wait for a message of the data plane and its descriptors; None when it has hung up."""
    head, descriptors, _flags, _address = socket.recv_fds(line, _LENGTH.size, _MAX_DESCRIPTORS)
    if not head:
        return None
    (length_bytes,) = _LENGTH.unpack(head)
    body = bytearray()
    while len(body) < length_bytes:
        chunk = line.recv(length_bytes - len(body))
        if not chunk:
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        body += chunk
    return json.loads(body), descriptors


class Inbox:
    """A message of a decoder as far as it has come, never more than the limit of it."""

    def __init__(self) -> None:
        self._data = bytearray()

    def read(self, line: socket.socket) -> dict[str, Any] | None:
        """Take what has come, and return the message once it is whole; EOFError if none will be.

        Waits as long as the socket's timeout for more.
        """
        chunk = line.recv(_CHUNK_BYTES)
        if not chunk:
            raise EOFError
        self._data += chunk
        if len(self._data) < _LENGTH.size:
            return None
        (length_bytes,) = _LENGTH.unpack_from(self._data)
        if length_bytes > MAX_BYTES:
            raise Malformed(f"A message of {length_bytes} bytes, over the {MAX_BYTES} allowed.")
        if len(self._data) < _LENGTH.size + length_bytes:
            return None
        body = bytes(self._data[_LENGTH.size :])
        self._data.clear()
        if len(body) > length_bytes:
            raise Malformed("More than one message.")
        try:
            message = json.loads(body)
        # Brackets within brackets within brackets end in the latter.
        except (ValueError, RecursionError) as error:
            raise Malformed(f"Not JSON: {error}.") from None
        if not isinstance(message, dict):
            raise Malformed("Not a message.")
        return message
