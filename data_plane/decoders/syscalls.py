"""Refuses a process the system calls by which it could reach beyond its open descriptors.

Landlock knows neither datagrams nor the sockets in the file system, on which databases listen.
"""

import ctypes
import errno
import os
import struct

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_RETURN, _LOAD_WORD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST = 0x06, 0x20, 0x15, 0x35
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_X32_CALLS = 0x40000000

# The kernel's name of the architecture, and its numbers of: socket, execve, execveat, ptrace,
# process_vm_readv, process_vm_writev, kill, bpf, userfaultfd, io_uring_setup, pidfd_getfd.
_CALLS = {
    "x86_64": (0xC000003E, (41, 59, 322, 101, 310, 311, 62, 321, 323, 425, 438)),
    "aarch64": (0xC00000B7, (198, 221, 281, 117, 270, 271, 129, 280, 282, 425, 438)),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_syscalls() -> bool:
    """Refuse them to this thread and those that it starts; False where that is not possible."""
    machine = os.uname().machine
    if machine not in _CALLS:
        return False
    instructions = _filter(*_CALLS[machine])
    program = _Program(len(instructions) // 8, instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return bool(prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _filter(architecture: int, numbers: tuple[int, ...]) -> bytes:
    """Return a program for the kernel: code, where to jump if so and if not, operand."""
    tests = [(_JUMP_IF_AT_LEAST, _X32_CALLS), *((_JUMP_IF_EQUAL, number) for number in numbers)]
    steps = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        # Each jumps over the tests that are left and over the return that allows.
        *((code, len(tests) - at, 0, operand) for at, (code, operand) in enumerate(tests)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
