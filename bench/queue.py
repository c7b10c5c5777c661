"""Promises of the job engine, each measured beside the queues people use, in one run."""

import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench import claim_cost, databases, watchers
from bench.databases import Fresh
from bench.queue_contenders import (
    HUEY,
    OURS,
    PGQUEUER,
    PROCRASTINATE,
    Contender,
    installed,
    listening,
    peer_versions,
    working,
)
from bench.verdicts import Verdicts, percentile, row, title

ENQUEUE_BATCH = 1_000


class Size(NamedTuple):
    """How much is measured."""

    rounds: int
    jobs: int
    delays: int
    history: int


def main() -> int:
    """Measure, print and judge."""
    with tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as state:
        os.environ["MEDIAPLANE_STATE"] = state
        missed = _measure(_size())
    print(f"\n{'MISSED: ' + '; '.join(missed) if missed else 'every promise was kept'}")
    return int(bool(missed))


def _measure(size: Size) -> list[str]:
    verdicts = Verdicts()
    print(f"peers: {', '.join(peer_versions('pgqueuer', 'procrastinate', 'huey'))}")
    print(f"processors: {os.cpu_count()}; rounds: {size.rounds}, in turn; median, lowest, highest")
    with databases.postgresql() as (fresh, settings):
        print("PostgreSQL:", ", ".join(f"{name}={value}" for name, value in settings.items()))
        _judge_postgresql(fresh, size, verdicts)
        title(f"Claim + finish of 100 jobs beside {size.history:,} finished jobs, PostgreSQL")
        claim_cost.measure(fresh, size.history, verdicts)
    with databases.sqlite() as fresh:
        _judge_sqlite(fresh, size, verdicts)
        title(f"Claim + finish of 100 jobs beside {size.history:,} finished jobs, SQLite")
        claim_cost.measure(fresh, size.history, verdicts)
        title("1,000 watchers")
        watchers.measure(fresh, size.history // 5, verdicts)
    return verdicts.missed


def _size() -> Size:
    is_quick = os.environ.get("QUICK", "") not in ("", "0")
    rounds = int(os.environ.get("ROUNDS") or (1 if is_quick else 7))
    return Size(rounds, 2_000, 50, 100_000) if is_quick else Size(rounds, 10_000, 490, 1_000_000)


def _judge_postgresql(fresh: Fresh, size: Size, verdicts: Verdicts) -> None:
    contenders = (PGQUEUER, PROCRASTINATE, OURS)
    title(f"Enqueue on PostgreSQL, {size.jobs:,} jobs in batches of {ENQUEUE_BATCH:,}")
    rates = _print_rates(_enqueue_rates(fresh, contenders, size))
    verdicts.at_least("enqueue, times PgQueuer", _times(rates, PGQUEUER), 1)
    for workers in (1, 4):
        title(f"Claim + finish on PostgreSQL, {size.jobs:,} jobs, worker processes: {workers}")
        rates = _print_rates(_drain_rates(fresh, contenders, size, workers), size.jobs)
        what = f"claim + finish, workers: {workers}, times"
        verdicts.at_least(f"{what} PgQueuer", _times(rates, PGQUEUER), 1.2)
        verdicts.at_least(f"{what} Procrastinate", _times(rates, PROCRASTINATE), 10)
    title("Enqueue to start on an idle PostgreSQL")
    delays = _print_delays(_start_delays(fresh, contenders, size))
    for percent in (50, 99):
        of_rounds = {who: [percentile(one, percent) for one in delays[who]] for who in delays}
        times = _times(of_rounds, PGQUEUER)
        verdicts.at_most(f"enqueue to start, p{percent}, times PgQueuer", times, 1)


def _judge_sqlite(fresh: Fresh, size: Size, verdicts: Verdicts) -> None:
    contenders = (HUEY, OURS)
    title(f"Enqueue on SQLite, {size.jobs:,} jobs in batches of {ENQUEUE_BATCH:,}")
    _print_rates(_enqueue_rates(fresh, contenders, size))
    title(f"Claim + finish on SQLite, {size.jobs:,} jobs, worker processes: 1")
    rates = _print_rates(_drain_rates(fresh, contenders, size, 1), size.jobs)
    verdicts.at_least("claim + finish on SQLite, times Huey", _times(rates, HUEY), 3)
    title("Enqueue to start on an idle SQLite")
    delays = _print_delays(_start_delays(fresh, contenders, size))
    p50 = percentile(_all(delays[OURS]), 50)
    verdicts.at_most("enqueue to start on SQLite, p50 in ms", p50, 10)


def _times(measured: dict[Contender, list[float]], peer: Contender) -> float:
    """Return how many times a peer's figure ours is: the median of the rounds.

    Of the rounds, because what the machine does meanwhile hits both figures of a round alike.
    """
    pairs = zip(measured[OURS], measured[peer], strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs)


def _enqueue_rates(
    fresh: Fresh, contenders: Sequence[Contender], size: Size
) -> dict[Contender, list[float]]:
    rates = defaultdict(list)
    for contenders_in_turn in _turns(contenders, size.rounds):
        for contender in contenders_in_turn:
            with fresh() as url, installed(contender, url) as running:
                running.enqueue(ENQUEUE_BATCH, ENQUEUE_BATCH)
                rates[contender].append(size.jobs / running.enqueue(size.jobs, ENQUEUE_BATCH))
    return rates


def _drain_rates(
    fresh: Fresh, contenders: Sequence[Contender], size: Size, workers: int
) -> dict[Contender, list[float]]:
    rates = defaultdict(list)
    for contenders_in_turn in _turns(contenders, size.rounds):
        for contender in contenders_in_turn:
            jobs = int(size.jobs * contender.part)
            with fresh() as url, working(contender, url, workers) as running:
                rates[contender].append(jobs / running.drain(jobs))
    return rates


def _start_delays(
    fresh: Fresh, contenders: Sequence[Contender], size: Size
) -> dict[Contender, list[list[float]]]:
    """Return the delays of each round."""
    delays: dict[Contender, list[list[float]]] = defaultdict(list)
    for contenders_in_turn in _turns(contenders, size.rounds):
        for contender in contenders_in_turn:
            with fresh() as url, listening(contender, url) as running:
                delays[contender].append(running.start_delays(size.delays // size.rounds))
    return delays


def _turns(contenders: Sequence[Contender], rounds: int) -> Iterator[Sequence[Contender]]:
    """Yield the contenders for each round, forwards and backwards in turn."""
    for number in range(rounds):
        yield contenders if number % 2 == 0 else contenders[::-1]


def _all(rounds: Sequence[list[float]]) -> list[float]:
    return [one for found in rounds for one in found]


def _print_rates(
    rates: dict[Contender, list[float]], jobs: int = 0
) -> dict[Contender, list[float]]:
    """Print a line for each; one that was given fewer jobs than the others says so."""
    for who, found in rates.items():
        fewer = f" ({int(jobs * who.part):,} jobs)" if jobs and who.part < 1 else ""
        row(who.name + fewer, found, "jobs/s")
    return rates


def _print_delays(
    delays: dict[Contender, list[list[float]]],
) -> dict[Contender, list[list[float]]]:
    for who, rounds in delays.items():
        found = _all(rounds)
        shown = "  ".join(
            f"p{percent} {percentile(found, percent):6.2f}" for percent in (50, 95, 99)
        )
        print(f"  {who.name:<28} {shown} ms  of {len(found)}")
    return delays


if __name__ == "__main__":
    sys.exit(main())
