"""Takes from a decoder process whatever decoding does not need, for good.

There is no limit of processor time: it would count all orders of the process together, and the
data plane kills a decoder that is over the time of its order.
"""

import ctypes
import os
import resource
import signal
import sysconfig
from contextlib import suppress

from data_plane.decoders.syscalls import refuse_syscalls

_MAX_FILE_BYTES = 512 << 20
_MAX_DESCRIPTORS = 128

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_CREATE_RULESET_VERSION, _LANDLOCK_RULE_PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# By the version of the kernel's interface: how many kinds of access to files it can deny.
_FILE_ACCESSES = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP_SINCE, _SCOPES_SINCE = 4, 6
_BOTH = 0b11  # to bind and to connect; signals and abstract sockets

_LIBRARIES = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    """What is denied, unless a rule allows it."""

    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Rule(ctypes.Structure):
    """What is allowed beneath a folder."""

    _pack_ = 1
    _fields_ = (("files", ctypes.c_uint64), ("folder_fd", ctypes.c_int32))


def confine(memory_bytes: int) -> str:
    """Confine this process, once its libraries are loaded, and return what holds it.

    Nothing here fails for want of a feature of the kernel: the level says what is there.
    """
    _limit_resources(memory_bytes)
    # Short of memory, the kernel is to end a decoder before a database.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    # A parent that died before this has closed its end of the line, which ends us as well.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Both bind the calling thread and those that it starts; a library that has started one
    # before would keep a way out.
    if len(os.listdir("/proc/self/task")) > 1:
        return "rlimits"
    levels = [
        name
        for name, is_held in (("landlock", _deny_files()), ("seccomp", refuse_syscalls()))
        if is_held
    ]
    return "+".join(levels) or "rlimits"


def _limit_resources(memory_bytes: int) -> None:
    with open("/proc/self/statm") as statm:
        mapped_bytes = int(statm.read().split()[0]) * resource.getpagesize()
    for kind, wanted in (
        # Libraries map far more than they use; what counts is what comes on top of it.
        (resource.RLIMIT_AS, mapped_bytes + memory_bytes),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, _MAX_DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (limit, limit))


def _deny_files() -> bool:
    """Deny every file but Python's own, and TCP where the kernel can; False if it can neither."""
    version = _libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    if version < 1:
        return False
    accesses = _FILE_ACCESSES.get(version, max(_FILE_ACCESSES.values()))
    ruleset = _Ruleset(
        (1 << accesses) - 1,
        _BOTH if version >= _TCP_SINCE else 0,
        _BOTH if version >= _SCOPES_SINCE else 0,
    )
    # A kernel refuses bits behind the part that it knows, but not zeros.
    ruleset_fd = _libc.syscall(
        _LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0
    )
    if ruleset_fd < 0:
        return False
    try:
        _allow_imports(ruleset_fd)
        return bool(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset_fd, 0) == 0)
    finally:
        os.close(ruleset_fd)


def _allow_imports(ruleset_fd: int) -> None:
    """Let libraries load parts of themselves late, as many do for the rarer kinds of files."""
    for folder in _LIBRARIES:
        try:
            folder_fd = os.open(folder, os.O_PATH)
        except OSError:
            continue  # not there, or not to be read anyway
        try:
            rule = _Rule(_READ_FILE | _READ_DIR, folder_fd)
            _libc.syscall(
                _LANDLOCK_ADD_RULE, ruleset_fd, _LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(rule), 0
            )
        finally:
            os.close(folder_fd)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}, {value}) failed: {os.strerror(error)}")
