"""Tries out what a data plane needs here, and says how it went: the program behind the doctor.

The folders to look at come on standard input, the answer goes to standard output, both as JSON.
"""

import base64
import json
import os
import struct
import sys
import zlib
from typing import Any

from google.protobuf.json_format import MessageToDict

from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Failed, Order, Output, Product
from data_plane.decoders.pool import Pool
from data_plane.executor import Retry
from data_plane.jail import Jail
from data_plane.roots import Roots
from data_plane.settings import DataSettings
from data_plane.status import probe_root
from mediaplane import settings
from mediaplane.errors import UnusableSettings
from mediaplane.protocol.values import MediaType

_WIDTH, _HEIGHT = 64, 48


def main() -> None:
    """Answer one request."""
    asked = json.load(sys.stdin)
    try:
        chosen = settings.read(DataSettings, os.environ)
    except UnusableSettings as error:
        sys.exit(str(error))
    roots = Roots(chosen.roots)
    with Jail(b"/") as jail:
        resolver = jail.resolver
    found = [probe_root(roots, base64.b64decode(root)) for root in asked["roots"]]
    answer = {
        "resolver": resolver,
        "roots": [MessageToDict(one, preserving_proto_field_name=True) for one in found],
        **_decode(chosen),
    }
    json.dump(answer, sys.stdout)


def _decode(chosen: DataSettings) -> dict[str, Any]:
    """Have a picture decoded by a real decoder; nothing of it touches a disk."""
    source, made = os.memfd_create("picture"), os.memfd_create("thumbnail")
    os.write(source, _picture())
    order = Order(MediaType.IMAGE, [Output(Product.PICTURE, _WIDTH // 2)], extension="png")
    pool = Pool(1, DecoderSettings(memory_bytes=chosen.decoder_memory_bytes))
    try:
        reply = pool.decode(order, source, [made], chosen.image_deadline_seconds, lambda: None)
        failure = reply.message if isinstance(reply, Failed) else ""
    except Retry as error:
        failure = str(error)
    finally:
        levels = sorted(pool.levels())
        pool.close()
    return {"sandbox": levels[0] if levels else "", "failure": failure}


def _picture() -> bytes:
    """Return a small grey PNG."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        checksum = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes(range(_WIDTH))) * _HEIGHT
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    )


if __name__ == "__main__":
    main()
