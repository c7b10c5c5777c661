"""Counters and histograms: figures that many threads add to."""

import threading

from mediaplane.counters import Counter, Histogram
from mediaplane.metrics import counted, distributed
from tests.support.scraping import told

THREADS, TIMES = 8, 2_000


def test_nothing_is_lost_when_many_threads_count() -> None:
    counter = Counter("things_total", "Things.", ("sort",))
    histogram = Histogram("waits_seconds", "Waits.", (1.0,), ("sort",))

    def work() -> None:
        for _ in range(TIMES):
            counter.add("a")
            histogram.observe("a", seconds=0.5)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.figures() == {("a",): THREADS * TIMES}
    assert histogram.distributions()["a",].counts == [THREADS * TIMES, 0]


def test_a_figure_that_is_known_stands_at_zero_before_anything_happens() -> None:
    counter = Counter("things_total", "Things.", ("sort",), [("a",), ("b",)])
    assert told(lambda: counted(counter))["things_total"] == {("a",): 0, ("b",): 0}


def test_a_bucket_holds_all_that_took_no_longer() -> None:
    histogram = Histogram("waits_seconds", "Waits.", (1.0, 5.0))
    for seconds in (0.5, 1.0, 3.0, 60.0):
        histogram.observe(seconds=seconds)
    found = told(lambda: distributed(histogram))
    assert found["waits_seconds_bucket"] == {("1.0",): 2, ("5.0",): 3, ("+Inf",): 4}
    assert found["waits_seconds_sum"] == {(): 64.5}
    assert found["waits_seconds_count"] == {(): 4}
