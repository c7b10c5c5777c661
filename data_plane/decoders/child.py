"""What a decoder process does: takes one order at a time and answers it, behind a sandbox."""

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data_plane.decoders.channel import receive, send
from data_plane.decoders.messages import (
    DecodeFailed,
    Done,
    Failed,
    Failure,
    Order,
    decode_order,
    encode_reply,
)
from data_plane.decoders.sandbox import confine
from mediaplane.protocol.values import MediaType

Make = Callable[[Order, int, Sequence[int]], Done]

_MAX_MESSAGE_CHARACTERS = 200


def serve(makers: Mapping[MediaType, Make]) -> None:
    """Answer orders until the data plane hangs up; the arguments are its line and the memory."""
    # They reach every process of a terminal or of a service; the data plane decides what ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as line:
        try:
            send(line, {"level": _confine_silently(int(sys.argv[2]))})
            while received := receive(line):
                send(line, encode_reply(_answer(makers, *received)))
        except (BrokenPipeError, ConnectionResetError):
            return


def _confine_silently(memory_bytes: int) -> str:
    """Let libraries complain to nobody from here on: a hostile file would choose the words."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    level = confine(memory_bytes)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return level


def _answer(
    makers: Mapping[MediaType, Make], data: dict[str, Any], descriptors: list[int]
) -> Done | Failed:
    try:
        order = decode_order(data)
        source_fd, *output_fds = descriptors
        return makers[order.media_type](order, source_fd, output_fds)
    except DecodeFailed as error:
        return error.failed
    except MemoryError:
        return Failed(
            Failure.OUT_OF_MEMORY,
            "Decoding it takes more memory than a decoder may have:"
            " raise MEDIAPLANE_DECODER_MEMORY_BYTES.",
        )
    except Exception as error:  # noqa: BLE001 - libraries raise whatever they like for a bad file
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return Failed(Failure.DISK_FULL, "The disk of the scratch folder is full.")
        return Failed(Failure.BROKEN, f"It cannot be decoded: {_reason(error)}.")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _reason(error: Exception) -> str:
    text = (getattr(error, "strerror", None) or str(error)).strip()
    # Paths are those of libraries or of this machine, and nobody's business.
    if not text or "/" in text:
        return type(error).__name__
    return text.splitlines()[0][:_MAX_MESSAGE_CHARACTERS].rstrip(".")
