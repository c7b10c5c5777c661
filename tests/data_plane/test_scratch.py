"""Scratch folders: gone with their worker, or with the next one that starts."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from data_plane.scratch import Scratch, sweep

OTHER_WORKER = """
import sys
from pathlib import Path
from data_plane.scratch import Scratch

with Scratch(Path(sys.argv[1]), "other").file() as file:
    print("busy", flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_worker(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process with a scratch file open."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_WORKER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "busy\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_folder_of_a_killed_worker_is_swept_with_its_files(tmp_path: Path) -> None:
    with other_worker(tmp_path) as process:
        process.kill()
        process.wait()
    assert len(list(tmp_path.glob("other/*.part"))) == 1
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_folder_of_a_living_worker_is_left_alone(tmp_path: Path, is_stopped: bool) -> None:
    with other_worker(tmp_path) as process:
        if is_stopped:
            process.send_signal(signal.SIGSTOP)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
        sweep(tmp_path)
        assert len(list(tmp_path.glob("other/*.part"))) == 1


def test_what_is_no_folder_of_a_worker_is_left_alone(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "scratch", tmp_path / "elsewhere"
    directory.mkdir()
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    (directory / "notes").touch()
    (directory / "link").symlink_to(elsewhere)
    sweep(directory)
    assert (directory / "notes").exists()
    assert (elsewhere / "precious").exists()


def test_what_a_killed_sweeper_has_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / "without-a-folder.life").touch()
    (tmp_path / "without-a-lock").mkdir()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_workers_that_start_while_others_sweep_keep_their_folders(tmp_path: Path) -> None:
    done = threading.Event()

    def sweep_on() -> None:
        while not done.is_set():
            sweep(tmp_path)

    with ThreadPoolExecutor(4) as threads:
        sweepers = [threads.submit(sweep_on) for _ in range(4)]
        try:
            for number in range(300):
                scratch = Scratch(tmp_path, f"worker-{number}")
                with scratch.file():
                    pass
                scratch.close()
        finally:
            done.set()
        for sweeper in sweepers:
            sweeper.result()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_nothing_to_sweep(tmp_path: Path) -> None:
    sweep(tmp_path / "nowhere")


def test_a_scratch_file_is_gone_however_its_block_ends(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, "worker")

    def fail_midway() -> None:
        with scratch.file() as file:
            file.write(b"x")
            assert len(list(scratch.folder.iterdir())) == 1
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail_midway()
    assert list(scratch.folder.iterdir()) == []
    scratch.close()


def test_a_worker_that_stops_takes_its_folder_with_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, "worker")
    (scratch.folder / "left").touch()
    scratch.close()
    assert list(tmp_path.iterdir()) == []
