"""Carries rings between the processes of one machine: a datagram socket each, in one folder."""

import os
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mediaplane.protocol.database import Topic

_SUFFIX = ".sock"
# The kernel keeps at least this many datagrams for a socket; beyond them some may be lost.
_SAFE_DATAGRAMS = 8


class BellSockets:
    """This process's socket, and the way to all others in the folder."""

    errors: type[Exception] = OSError

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        self._folder_fd = -1
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Bind the socket."""
        self.close()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder_fd = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        # Under its name only when it is bound: until then others would take it for a dead one.
        self._socket.bind(self._path(f".{self._name}"))
        os.rename(self._path(f".{self._name}"), self._path(self._name))

    def fileno(self) -> int:
        """Return the descriptor that can be read when somebody has rung."""
        return self._socket.fileno() if self._socket else -1

    def receive(self) -> set[Topic]:
        """Return what was rung; every topic when some of it may have been lost."""
        topics: set[Topic] = set()
        count = 0
        while datagram := self._read():
            count += 1
            topics |= {topic for topic in Topic if topic.encode() == datagram}
        return topics if count < _SAFE_DATAGRAMS else set(Topic)

    def send(self, topics: Iterable[Topic]) -> None:
        """Ring every other socket in the folder, and remove those whose process is gone."""
        if self._folder_fd < 0:
            return
        others = [name for name in os.listdir(self._path("")) if name.endswith(_SUFFIX)]
        # A new one each time: what a stopped process has not read would use up its buffer.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for name in others:
                if name != self._name:
                    self._send(sender, self._path(name), topics)

    def close(self) -> None:
        """Remove the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._folder_fd >= 0:
            with suppress(OSError):
                os.unlink(self._path(self._name))
            os.close(self._folder_fd)
            self._folder_fd = -1

    def _read(self) -> bytes:
        with suppress(BlockingIOError):
            return self._socket.recv(64) if self._socket else b""
        return b""

    def _send(self, sender: socket.socket, path: str, topics: Iterable[Topic]) -> None:
        try:
            for topic in topics:
                sender.sendto(topic.encode(), socket.MSG_DONTWAIT, path)
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except OSError:
            # Its buffer is full, so it has enough to wake up for; or it has just ended.
            return

    def _path(self, name: str) -> str:
        # By descriptor: the path of a socket is limited to 107 bytes, that of a folder is not.
        return f"/proc/self/fd/{self._folder_fd}/{name}"
