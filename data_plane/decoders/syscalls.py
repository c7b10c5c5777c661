"""Refuses a process the system calls by which it could reach beyond its open descriptors.

Landlock knows neither datagrams nor the sockets in the file system, on which databases listen, and
lets whoever owns a file change its mode and its times.
"""

import ctypes
import errno
import os
import struct

from data_plane.decoders.syscall_numbers import (
    ARCHITECTURES,
    CLONE,
    CLONE3,
    PRLIMIT64,
    REFUSED,
    TGKILL,
)

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_RETURN, _LOAD_WORD = 0x06, 0x20
_JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _JUMP_IF_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL, _ANSWER = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE, _LACK = _ANSWER | errno.EPERM, _ANSWER | errno.ENOSYS
# Of both architectures, the lower half of an argument comes first.
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_X32_CALLS = 0x40000000
_CLONE_THREAD = 0x00010000

_Step = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_syscalls() -> bool:
    """Refuse them to this thread and those that it starts; False where that is not possible."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        return False
    steps = _filter(*ARCHITECTURES[machine])
    instructions = b"".join(struct.pack("=HBBI", *step) for step in steps)
    program = _Program(len(steps), instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return bool(prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _filter(architecture: int, column: int) -> list[_Step]:
    """Return a program for the kernel: code, steps to skip if so and if not, operand."""
    refused = [number for pair in REFUSED.values() if (number := pair[column]) is not None]
    return [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        *_answer_if(_JUMP_IF_AT_LEAST, _X32_CALLS, _REFUSE),
        *(step for number in refused for step in _answer_if(_JUMP_IF_EQUAL, number, _REFUSE)),
        # Its flags lie in memory, where a filter cannot look; libc then asks for a plain clone.
        *_answer_if(_JUMP_IF_EQUAL, CLONE3[column], _LACK),
        *_allow_only(CLONE[column], _JUMP_IF_ANY_BIT, _CLONE_THREAD),
        *_allow_only(PRLIMIT64[column], _JUMP_IF_EQUAL, 0),
        # To itself, by which `abort` ends a process.
        *_allow_only(TGKILL[column], _JUMP_IF_EQUAL, os.getpid()),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _answer_if(test: int, operand: int, answer: int) -> list[_Step]:
    return [(test, 0, 1, operand), (_RETURN, 0, 0, answer)]


def _allow_only(number: int, test: int, operand: int) -> list[_Step]:
    """Allow a call if its first argument passes a test, and refuse it otherwise."""
    return [
        (_JUMP_IF_EQUAL, 0, 4, number),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT_AT),
        (test, 0, 1, operand),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
