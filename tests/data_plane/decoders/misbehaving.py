"""A decoder process that does to an order what the order's extension says."""

import ctypes
import importlib
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

from data_plane.decoders.child import serve
from data_plane.decoders.messages import DecodeFailed, Done, Failure, Made, Order
from data_plane.decoders.syscall_numbers import ARCHITECTURES, REFUSED, TGKILL
from mediaplane.protocol.values import MediaType

PID_FILE_BYTES = 8
_held: list[bytes] = []
# Libraries map far more than they use.
_unused = mmap.mmap(-1, 1 << 30)


def make(order: Order, source_fd: int, output_fds: Sequence[int]) -> Done:
    behaviour: Callable[..., None] = globals()[f"do_{order.extension}"]
    behaviour(source_fd, output_fds)
    return Done(1, 1, [Made(1, 1, os.fstat(fd).st_size) for fd in output_fds])


def do_copy(source_fd: int, output_fds: Sequence[int]) -> None:
    content = os.read(source_fd, 1 << 20)
    for output_fd in output_fds:
        os.write(output_fd, content)


def do_crash(*_: object) -> None:
    ctypes.string_at(0)


def do_exit(*_: object) -> None:
    os._exit(3)


def do_hang(_source_fd: int, output_fds: Sequence[int]) -> None:
    """Write a file half, then say so by the process's number in it, then never end."""
    os.write(output_fds[0], os.getpid().to_bytes(PID_FILE_BYTES, "big"))
    while True:
        time.sleep(60)


def do_copy_once(source_fd: int, output_fds: Sequence[int]) -> None:
    """Wait to be killed while the source says so by its first byte."""
    if os.pread(source_fd, 1, 0) == b"w":
        os.read(source_fd, 1)
        do_hang(source_fd, output_fds)
    do_copy(source_fd, output_fds)


def do_copy_later(source_fd: int, output_fds: Sequence[int]) -> None:
    """Say who this is, and wait while the source says so by its first byte."""
    os.write(output_fds[0], os.getpid().to_bytes(PID_FILE_BYTES, "big"))
    while os.pread(source_fd, 1, 0) == b"w":
        time.sleep(0.01)
    do_copy(source_fd, output_fds)


def do_kill_itself(*_: object) -> None:
    signal.raise_signal(signal.SIGKILL)


def do_hog(*_: object) -> None:
    """Use what was mapped before there was a limit to it."""
    step_bytes = 8 << 20
    for start in range(0, len(_unused), step_bytes):
        _unused[start : start + step_bytes] = b"\1" * step_bytes
        time.sleep(0.05)


def do_keep(*_: object) -> None:
    _held.append(b"\1" * (64 << 20))


def do_want_too_much(*_: object) -> None:
    bytearray(1 << 34)


def do_garbage(*_: object) -> None:
    _write(struct.pack("!I", 9) + b"\xffnonsense")


def do_nested(*_: object) -> None:
    _write(struct.pack("!I", 100_000) + b"[" * 100_000)


def do_wrong_reply(*_: object) -> None:
    _write(struct.pack("!I", 2) + b"{}")


def do_oversize(*_: object) -> None:
    _write(struct.pack("!I", 0xFFFFFFFF))
    time.sleep(60)


def do_flood(*_: object) -> None:
    """Begin a message of the largest size allowed, and send ever more of it."""
    _write(struct.pack("!I", 1 << 20))
    while True:
        _write(b"x" * 4096)


def do_drip(*_: object) -> None:
    """Begin a message and never end it, but keep the line busy."""
    _write(struct.pack("!I", 1 << 20))
    while True:
        _write(b" ")
        time.sleep(0.01)


def do_hang_up(*_: object) -> None:
    socket.socket(fileno=int(sys.argv[1])).shutdown(socket.SHUT_RDWR)
    time.sleep(60)


def do_send_descriptors(source_fd: int, _output_fds: Sequence[int]) -> None:
    line = socket.socket(fileno=os.dup(int(sys.argv[1])))
    socket.send_fds(line, [struct.pack("!I", 2)], [source_fd] * 50)
    _write(b"{}")


def do_lie(_source_fd: int, output_fds: Sequence[int]) -> None:
    """Say a size, and write more: here, after the size was taken."""
    body = (
        b'{"width": 1, "height": 1, "made": [{"width": 1, "height": 1, "bytes_size": 7}],'
        b' "is_degraded": false, "duration_ms": null, "frames": [], "poster_ms": null,'
        b' "digest": null, "bytes_read": 0}'
    )
    os.write(output_fds[0], b"12345678")
    _write(struct.pack("!I", len(body)) + body)


def do_refuse(*_: object) -> None:
    raise DecodeFailed(Failure.UNSUPPORTED, "No \ud800\0\33[31m here.")


def do_raise(*_: object) -> None:
    raise ValueError("a bad header.\nand more")


def do_raise_a_path(*_: object) -> None:
    raise ValueError("no /usr/lib/secret here")


def do_import_late(*_: object) -> None:
    assert "colorsys" not in sys.modules
    importlib.import_module("colorsys")


def do_open_file(*_: object) -> None:
    os.open("/etc/passwd", os.O_RDONLY)


def do_create_file(source_fd: int, _output_fds: Sequence[int]) -> None:
    os.open(os.read(source_fd, 4096), os.O_WRONLY | os.O_CREAT)


def do_connect(*_: object) -> None:
    socket.create_connection(("127.0.0.1", 9))


def do_datagram(*_: object) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def do_unix_socket(*_: object) -> None:
    socket.socket(socket.AF_UNIX)


def do_execute(*_: object) -> None:
    subprocess.run(["/bin/true"], check=True)


def do_signal_parent(*_: object) -> None:
    os.kill(os.getppid(), signal.SIGUSR1)


def do_signal_thread_of_parent(*_: object) -> None:
    _call(TGKILL, os.getppid(), os.getppid(), signal.SIGUSR1)


def do_limit_parent(*_: object) -> None:
    resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (7, 7))


def do_renice_parent(*_: object) -> None:
    os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, 0) + 1)


def do_pin_parent(*_: object) -> None:
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))


def do_hold_parent(*_: object) -> None:
    os.pidfd_open(os.getppid())


def do_fork(*_: object) -> None:
    if os.fork() == 0:
        os._exit(0)


def do_unshare(*_: object) -> None:
    clone_newuser = 0x10000000
    _call(REFUSED["unshare"], clone_newuser)


def do_chmod(source_fd: int, _output_fds: Sequence[int]) -> None:
    os.chmod(os.read(source_fd, 4096), 0o4777)


def do_fchmod(_source_fd: int, output_fds: Sequence[int]) -> None:
    os.fchmod(output_fds[0], 0o4777)


def do_chown(source_fd: int, _output_fds: Sequence[int]) -> None:
    os.chown(os.read(source_fd, 4096), os.getuid(), os.getgid())


def do_utime(source_fd: int, _output_fds: Sequence[int]) -> None:
    os.utime(os.read(source_fd, 4096), (1, 1))


def do_setxattr(source_fd: int, _output_fds: Sequence[int]) -> None:
    os.setxattr(os.read(source_fd, 4096), "user.mark", b"1")


def do_start_thread(_source_fd: int, output_fds: Sequence[int]) -> None:
    thread = threading.Thread(target=os.write, args=(output_fds[0], b"by a thread"))
    thread.start()
    thread.join()


def do_abort(*_: object) -> None:
    os.abort()


def do_write_forever(_source_fd: int, output_fds: Sequence[int]) -> None:
    os.lseek(output_fds[0], 512 << 20, os.SEEK_SET)
    os.write(output_fds[0], b"x")


def do_fill(_source_fd: int, output_fds: Sequence[int]) -> None:
    while True:
        os.write(output_fds[0], bytes(1 << 16))


def do_report_environment(_source_fd: int, output_fds: Sequence[int]) -> None:
    os.write(output_fds[0], "\n".join(os.environ).encode())


def _call(numbers: tuple[int | None, int | None], *arguments: int) -> None:
    number = numbers[ARCHITECTURES[os.uname().machine][1]]
    if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _write(data: bytes) -> None:
    line = int(sys.argv[1])
    while data:
        data = data[os.write(line, data) :]


if __name__ == "__main__":
    serve({MediaType.IMAGE: make})
