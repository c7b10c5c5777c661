"""File systems of our own, for tests of what a disk can do to us."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# EXT4_IOC_SHUTDOWN: from now on nothing reaches the disk, not even the journal.
_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2


@contextmanager
def small_disk(directory: Path, size_bytes: int) -> Iterator[None]:
    """Mount a file system of this size for the duration."""
    mount(["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs"], directory)
    try:
        yield
    finally:
        unmount(directory)


def make_image(path: Path, size_bytes: int) -> None:
    """Make an ext4 file system in a file."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    _run(["mkfs.ext4", "-q", str(path)])


@contextmanager
def mounted_image(image: Path, directory: Path) -> Iterator[None]:
    """Mount a file system that lies in a file."""
    mount(["-o", "loop", str(image)], directory)
    try:
        yield
    finally:
        unmount(directory)


def cut_power(directory: Path) -> None:
    """Lose whatever of a file system is not on its disk by now."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
    finally:
        os.close(descriptor)


def mount(arguments: list[str], directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    _run(["mount", *arguments, str(directory)])


def unmount(directory: Path) -> None:
    # Lazily, where a process that has been killed is not quite gone.
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"{command[0]} is missing")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{command[0]} is not permitted here: {error.stderr.strip()}")
