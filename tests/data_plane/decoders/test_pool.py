"""Whatever a decoder process does, the order ends, and the next one is done."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from data_plane.decoders.decoder import Kill
from data_plane.decoders.messages import Done, Failed, Failure
from data_plane.executor import Cancelled, Interrupted, LeaseLost, Retry
from tests.data_plane.decoders.conftest import PATIENCE_SECONDS, Bench, BenchOf
from tests.data_plane.decoders.misbehaving import PID_FILE_BYTES
from tests.faults.mounts import small_disk
from tests.support.waiting import eventually


def pid_of_hanging(bench: Bench) -> int:
    """The process that has written its number, and waits."""

    def look() -> bytes:
        content = bench.made.read_bytes() if bench.made.exists() else b""
        return content if len(content) == PID_FILE_BYTES else b""

    return int.from_bytes(eventually(look), "big")


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def children() -> set[int]:
    """The processes that this one has started, those not reaped as well."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.add(int(stat.parent.name))
    return found


def failure(reply: Done | Failed) -> Failure:
    assert isinstance(reply, Failed)
    return reply.code


def assert_next_is_done(bench: Bench) -> None:
    assert isinstance(bench.decode("copy"), Done)
    assert bench.made.read_bytes() == bench.source.read_bytes()


def test_one_process_does_one_order_after_the_other(bench: Bench) -> None:
    for _ in range(3):
        assert_next_is_done(bench)
    tally = bench.pool.tally()
    assert (tally.spawned, tally.items, tally.crashes, tally.lost) == (1, 3, 0, 0)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [("crash", "signal 11"), ("exit", "exited with 3")],
)
def test_a_process_that_crashes_fails_its_order_alone(
    bench: Bench, behaviour: str, words: str
) -> None:
    reply = bench.decode(behaviour)
    assert failure(reply) is Failure.CRASHED
    assert words in str(reply)
    assert bench.pool.tally().crashes == 1
    assert_next_is_done(bench)


@pytest.mark.parametrize(
    "behaviour",
    [
        "garbage", "nested", "wrong_reply", "oversize", "flood", "hang_up", "lie",
        "send_descriptors",
    ],
)  # fmt: skip
def test_a_process_that_answers_nonsense_is_killed(bench: Bench, behaviour: str) -> None:
    assert failure(bench.decode(behaviour)) is Failure.CRASHED
    tally = bench.pool.tally()
    assert (tally.crashes, tally.kills[Kill.MALFORMED]) == (1, 1)
    assert_next_is_done(bench)
    assert bench.pool.tally().spawned == 2


@pytest.mark.parametrize("behaviour", ["hang", "drip"])
def test_a_process_that_does_not_end_is_killed_at_its_deadline(
    bench: Bench, behaviour: str
) -> None:
    assert failure(bench.decode(behaviour, deadline_seconds=0.5)) is Failure.TIMED_OUT
    assert bench.pool.tally().kills[Kill.TIMED_OUT] == 1
    assert_next_is_done(bench)


def test_a_process_that_uses_too_much_memory_is_killed(bench: Bench) -> None:
    assert failure(bench.decode("hog")) is Failure.OUT_OF_MEMORY
    assert bench.pool.tally().kills[Kill.OUT_OF_MEMORY] == 1
    assert_next_is_done(bench)


def test_a_process_that_asks_for_too_much_memory_is_refused_and_goes_on(bench: Bench) -> None:
    assert failure(bench.decode("want_too_much")) is Failure.OUT_OF_MEMORY
    assert_next_is_done(bench)
    assert bench.pool.tally().spawned == 1


def test_an_error_of_a_library_is_told_in_one_line(bench: Bench) -> None:
    assert bench.decode("raise") == Failed(Failure.BROKEN, "It cannot be decoded: a bad header.")


def test_an_error_of_a_library_shows_no_path(bench: Bench) -> None:
    assert bench.decode("raise_a_path") == Failed(
        Failure.BROKEN, "It cannot be decoded: ValueError."
    )


def test_what_a_process_says_is_made_printable(bench: Bench) -> None:
    assert bench.decode("refuse") == Failed(Failure.UNSUPPORTED, "No ???[31m here.")


def test_an_order_whose_process_somebody_kills_is_done_by_another(bench: Bench) -> None:
    bench.source.write_bytes(b"wait")
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(bench.decode, "copy_once")
        pid = pid_of_hanging(bench)
        with bench.source.open("r+b") as source:
            source.write(b"X")
        os.kill(pid, signal.SIGKILL)
        assert isinstance(reply.result(), Done)
    # From the first byte on, although the process that was killed has read some.
    assert bench.made.read_bytes() == b"Xait"
    tally = bench.pool.tally()
    assert (tally.spawned, tally.items, tally.lost, tally.crashes) == (2, 1, 1, 0)


def test_an_order_whose_process_is_killed_twice_is_failed(bench: Bench) -> None:
    assert failure(bench.decode("kill_itself")) is Failure.CRASHED
    tally = bench.pool.tally()
    assert (tally.spawned, tally.lost, tally.crashes) == (2, 2, 1)
    assert_next_is_done(bench)


def test_a_process_that_is_killed_while_idle_is_replaced_unnoticed(bench: Bench) -> None:
    assert isinstance(bench.decode("copy"), Done)
    child = bench.pool._decoders[0]._child
    assert child
    os.kill(child.process.pid, signal.SIGKILL)
    eventually(lambda: child.process.poll() is not None)
    assert_next_is_done(bench)
    assert (bench.pool.tally().spawned, bench.pool.tally().lost) == (2, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_of_a_service_does_not_end_an_order(
    bench: Bench, number: signal.Signals
) -> None:
    bench.source.write_bytes(b"wait")
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(bench.decode, "copy_later")
        os.kill(pid_of_hanging(bench), number)
        bench.source.write_bytes(b"X")
        assert isinstance(reply.result(), Done)
    assert (bench.pool.tally().spawned, bench.pool.tally().lost) == (1, 0)


@pytest.mark.parametrize(
    ("stop", "ending"),
    [
        (lambda control: control.cancelled.set(), Cancelled),
        (lambda control: control.interrupted.set(), Interrupted),
        (lambda control: control.lost.set(), LeaseLost),
    ],
)
def test_an_order_that_is_to_end_early_ends_with_its_process(
    bench: Bench, stop: Callable[..., None], ending: type[Exception]
) -> None:
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(bench.decode, "hang")
        pid = pid_of_hanging(bench)
        stop(bench.control)
        # Its deadline would come later than this, and end it in another way.
        with pytest.raises(ending):
            reply.result(PATIENCE_SECONDS / 2)
    assert is_gone(pid)
    assert bench.pool.tally().kills[Kill.ENDED_EARLY] == 1


def test_an_order_that_waits_for_a_decoder_can_be_cancelled(bench: Bench) -> None:
    other = Bench(bench.pool, bench.folder, bench.source, bench.folder / "other")
    with ThreadPoolExecutor(2) as threads:
        busy = threads.submit(bench.decode, "hang")
        pid_of_hanging(bench)
        waiting = threads.submit(other.decode, "copy")
        other.control.cancelled.set()
        with pytest.raises(Cancelled):
            waiting.result()
        assert not busy.done()
        bench.control.cancelled.set()


def test_an_order_is_put_off_while_no_process_can_be_started(
    bench_of: BenchOf, capfd: pytest.CaptureFixture[str]
) -> None:
    bench = bench_of(module="tests.data_plane.decoders.nowhere")
    with pytest.raises(Retry, match="could be started"):
        bench.decode("copy")
    assert bench.pool.tally().kills[Kill.NOT_STARTED] == bench.pool.tally().spawned == 3
    assert "No module named" in capfd.readouterr().err


def test_an_order_is_put_off_when_the_disk_is_full(bench: Bench, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20):
        full = Bench(bench.pool, tmp_path, bench.source, tmp_path / "disk" / "made")
        with pytest.raises(Retry, match="full"):
            full.decode("fill")
    assert_next_is_done(bench)
    assert bench.pool.tally().spawned == 1


def test_a_file_that_cannot_be_decoded_is_not_blamed_on_a_full_disk(
    bench: Bench, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 1 << 20):
        full = Bench(bench.pool, tmp_path, bench.source, tmp_path / "disk" / "made")
        full.made.touch()
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "disk" / "ballast").write_bytes(bytes(2 << 20))
        assert os.statvfs(tmp_path / "disk").f_bavail == 0
        assert failure(full.decode("raise")) is Failure.BROKEN


def test_a_process_is_replaced_after_so_many_orders(bench_of: BenchOf) -> None:
    bench = bench_of(recycle_items=2)
    for _ in range(5):
        assert_next_is_done(bench)
    tally = bench.pool.tally()
    assert (tally.spawned, tally.kills[Kill.RECYCLED]) == (3, 2)


def test_a_process_that_keeps_much_memory_is_replaced(bench_of: BenchOf) -> None:
    bench = bench_of(recycle_bytes=48 << 20)
    assert_next_is_done(bench)
    assert bench.pool.tally().kills[Kill.RECYCLED] == 0
    assert isinstance(bench.decode("keep"), Done)
    assert bench.pool.tally().kills[Kill.RECYCLED] == 1


def test_a_closed_pool_interrupts_what_is_under_way_and_what_comes_later(bench: Bench) -> None:
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(bench.decode, "hang")
        pid = pid_of_hanging(bench)
        bench.pool.close()
        with pytest.raises(Interrupted):
            reply.result()
    assert is_gone(pid)
    with pytest.raises(Interrupted):
        bench.decode("copy")


def test_a_process_outlives_the_thread_that_first_needed_it(bench: Bench) -> None:
    for _ in range(3):
        with ThreadPoolExecutor(1) as threads:
            assert isinstance(threads.submit(bench.decode, "copy").result(), Done)
    assert (bench.pool.tally().spawned, bench.pool.tally().lost) == (1, 0)


def test_orders_of_all_kinds_leave_neither_descriptors_nor_processes(bench_of: BenchOf) -> None:
    bench = bench_of(decoders=2, recycle_items=40)
    assert_next_is_done(bench)
    bench.pool.close()
    before = set(os.listdir("/proc/self/fd")), children()

    bench = bench_of(decoders=2, recycle_items=40)
    kinds = ["raise", "want_too_much", "crash", "garbage", "send_descriptors", *["copy"] * 65]
    benches = [
        Bench(bench.pool, bench.folder, bench.source, bench.folder / f"made {thread}")
        for thread in range(3)
    ]
    with ThreadPoolExecutor(len(benches)) as threads:
        runs = [threads.submit(_decode_all, one, kinds) for one in benches]
        replies = [reply for run in runs for reply in run.result()]
    assert len(replies) == 210
    assert sum(isinstance(reply, Done) for reply in replies) == 195
    assert len(children()) > len(before[1])
    bench.pool.close()
    assert (set(os.listdir("/proc/self/fd")), children()) == before


def _decode_all(bench: Bench, behaviours: list[str]) -> list[Done | Failed]:
    return [bench.decode(behaviour) for behaviour in behaviours]
