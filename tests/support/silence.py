"""A client that opens calls and never sends their requests, which no library of gRPC would do."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SETTINGS, _HEADERS = 0x4, 0x1
_ACKNOWLEDGED, _END_HEADERS = 0x1, 0x4


@contextmanager
def silent_calls(address: str, method: str, count: int) -> Iterator[None]:
    """Have that many calls of a method open on one connection, without requests."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address.removeprefix("unix:"))
        line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0))
        line.sendall(_frame(_SETTINGS, _ACKNOWLEDGED, 0))
        headers = _headers(method)
        for number in range(count):
            line.sendall(_frame(_HEADERS, _END_HEADERS, 2 * number + 1, headers))
        # Somebody has to read what the server says, or it would stop to listen.
        reader = threading.Thread(target=_read_all, args=[line], daemon=True)
        reader.start()
        try:
            yield
        finally:
            line.shutdown(socket.SHUT_RDWR)
            reader.join()


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _headers(method: str) -> bytes:
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    # Each as a literal that is not indexed, which needs no table and no Huffman code.
    return b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )


def _read_all(line: socket.socket) -> None:
    while line.recv(1 << 16):
        pass
