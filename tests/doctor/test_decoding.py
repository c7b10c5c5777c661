"""The doctor has the data plane's own code try out what it needs on this machine."""

import errno
import struct
from pathlib import Path

import pytest

from mediaplane.doctor import decoding
from mediaplane.doctor.finding import Finding, Level
from mediaplane.locations import Locations
from tests.doctor.reading import levels, only

_OPENAT2 = 437


def look(locations: Locations) -> list[Finding]:
    return list(decoding.look(decoding.check_up(locations)))


def put_first(monkeypatch: pytest.MonkeyPatch, module: Path, source: str) -> None:
    """Have every Python that is started import this module instead of another one."""
    module.write_text(source)
    monkeypatch.setenv("PYTHONPATH", f"{module.parent}:{Path(__file__).parents[2]}")


def test_a_library_that_cannot_be_loaded_is_a_problem(
    locations: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, tmp_path / "PIL.py", "raise ImportError('libjpeg.so.62 is missing')")
    assert levels(look(locations), "decoders") == ["problem"]


def test_decoders_that_cannot_be_confined_are_warned_of(
    locations: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second thread keeps a process from being confined."""
    source = (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    put_first(monkeypatch, tmp_path / "sitecustomize.py", source)
    found = only(look(locations), "sandbox", Level.WARNING)
    assert "without landlock and seccomp" in found.message


def test_a_kernel_without_openat2_is_warned_of(
    locations: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes refuse themselves the system call before they do anything else."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, _OPENAT2), (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
             (0x06, 0, 0, 0x7FFF0000)]  # fmt: skip
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    source = f"""import ctypes

class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program({len(steps)}, {program!r})), 0, 0) == 0
"""
    put_first(monkeypatch, tmp_path / "sitecustomize.py", source)
    found = only(look(locations), "sandbox", Level.WARNING)
    assert "openat2" in found.message


def test_a_setting_that_cannot_be_used_is_a_problem(
    locations: Locations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDIAPLANE_SLOTS", "many")
    found = only(look(locations), "decoders", Level.PROBLEM)
    assert "MEDIAPLANE_SLOTS is 'many'" in found.message
