"""What a decoder process cannot do, even when a hostile file has taken it over."""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from data_plane.decoders.messages import Done, Failed
from tests.data_plane.decoders.conftest import MISBEHAVING, Bench, BenchOf
from tests.support.privileges import NOBODY
from tests.support.waiting import eventually

WORKER = f"""
import os, sys
from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Order, Output, Product
from data_plane.decoders.pool import Pool
from mediaplane.protocol.values import MediaType

pool = Pool(1, DecoderSettings(module={MISBEHAVING!r}))
order = Order(MediaType.IMAGE, [Output(Product.PICTURE, 320)], extension="hang")
source_fd = os.open(os.devnull, os.O_RDONLY)
output_fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
pool.decode(order, source_fd, [output_fd], 600.0, lambda: None)
"""

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def has_landlock() -> bool:
    return bool(ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1) > 0)


def test_the_level_is_the_best_that_the_kernel_offers(bench: Bench) -> None:
    assert isinstance(bench.decode("copy"), Done)
    expected = ["landlock"] if has_landlock() else []
    if os.uname().machine in ("x86_64", "aarch64"):
        expected.append("seccomp")
    assert bench.pool.levels() == {"+".join(expected) or "rlimits"}


@pytest.mark.parametrize(
    "behaviour",
    [
        "open_file", "create_file", "connect", "datagram", "unix_socket", "execute",
        "signal_parent", "signal_thread_of_parent", "limit_parent", "renice_parent", "pin_parent",
        "hold_parent", "fork", "unshare",
    ],
)  # fmt: skip
def test_a_process_can_reach_neither_files_nor_the_network_nor_others(
    bench: Bench, behaviour: str
) -> None:
    assert isinstance(bench.decode("copy"), Done)
    assert bench.pool.levels() == {"landlock+seccomp"}
    intruder = bench.folder / "made by a decoder"
    bench.source.write_bytes(bytes(intruder))
    before = signal.signal(signal.SIGUSR1, lambda *_: pytest.fail("a decoder sent a signal"))
    try:
        reply = bench.decode(behaviour)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert isinstance(reply, Failed)
    assert "ermi" in reply.message  # permission denied, or not permitted
    assert not intruder.exists()


@pytest.mark.parametrize("behaviour", ["chmod", "fchmod", "chown", "utime", "setxattr"])
def test_a_process_cannot_change_what_is_known_of_a_file_that_its_user_owns(
    bench: Bench, behaviour: str
) -> None:
    victim = bench.folder / "photo.jpg"
    victim.write_bytes(b"photo")
    bench.made.touch(0o600)
    before = victim.stat(), bench.made.stat().st_mode
    bench.source.write_bytes(bytes(victim))
    reply = bench.decode(behaviour)
    assert isinstance(reply, Failed)
    assert "not permitted" in reply.message
    assert (victim.stat(), bench.made.stat().st_mode) == before
    assert os.listxattr(victim) == []


def test_a_process_can_still_start_threads(bench: Bench) -> None:
    assert isinstance(bench.decode("start_thread"), Done)
    assert bench.made.read_bytes() == b"by a thread"


def test_a_process_can_still_end_itself_by_a_signal(bench: Bench) -> None:
    assert f"signal {signal.SIGABRT.value}" in str(bench.decode("abort"))


def test_a_library_can_still_load_its_parts(bench: Bench) -> None:
    assert isinstance(bench.decode("import_late"), Done)
    assert bench.pool.levels() == {"landlock+seccomp"}


def test_a_process_without_privileges_is_confined_as_well() -> None:
    assert confined_by(f"import os; os.getuid() or os.setuid({NOBODY})") == "landlock+seccomp"


def test_a_process_that_has_threads_already_does_not_claim_to_be_confined() -> None:
    thread = "import threading; threading.Thread(target=threading.Event().wait, daemon=True)"
    assert confined_by(f"{thread}.start()") == "rlimits"


def test_decoders_that_are_not_confined_are_told_of_once(
    bench_of: BenchOf, caplog: pytest.LogCaptureFixture
) -> None:
    bench = bench_of(module="tests.data_plane.decoders.threaded", recycle_items=1)
    for _ in range(2):
        assert isinstance(bench.decode("copy"), Done)
    assert (bench.pool.levels(), bench.pool.tally().spawned) == ({"rlimits"}, 2)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "without landlock and seccomp" in warning


def test_decoders_that_are_confined_are_not_worth_a_word(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(bench.decode("copy"), Done)
    assert caplog.records == []


def confined_by(preparation: str) -> str:
    """The level that a process reaches after this code."""
    script = (
        f"from data_plane.decoders.sandbox import confine; {preparation}; print(confine(1 << 30))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, check=True, text=True
    )
    return ran.stdout.strip()


def test_a_process_cannot_fill_the_disk(bench: Bench) -> None:
    reply = bench.decode("write_forever")
    assert isinstance(reply, Failed)
    assert "File too large" in reply.message


def test_a_process_knows_no_secret_of_its_worker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDIAPLANE_DATABASE_URL", "postgresql://user:secret@host/db")
    assert isinstance(bench.decode("report_environment"), Done)
    names = bench.made.read_text().split()
    assert "VIPS_CONCURRENCY" in names
    assert not [name for name in names if name.startswith("MEDIAPLANE")]


def test_a_process_dies_with_its_worker(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", WORKER, str(pid_file)], env=ENVIRONMENT) as worker:
        try:
            pid = int.from_bytes(
                eventually(lambda: pid_file.read_bytes() if pid_file.exists() else b""), "big"
            )
            assert Path(f"/proc/{pid}").exists()
        finally:
            worker.kill()
    eventually(lambda: not _is_running(pid))


def _is_running(pid: int) -> bool:
    """Whether it runs; one without a parent may stay a zombie where nobody reaps it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
