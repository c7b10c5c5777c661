"""Prints what was measured, beside what is promised, and remembers whether a promise was missed."""

import statistics
from collections.abc import Sequence


class Verdicts:
    """What became of the promises of one run."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def at_least(self, promise: str, value: float, limit: float) -> None:
        """Judge a value that may not be lower."""
        self._judge(promise, f"{value:.2f}", f"at least {limit:g}", is_kept=value >= limit)

    def at_most(self, promise: str, value: float, limit: float) -> None:
        """Judge a value that may not be higher."""
        self._judge(promise, f"{value:.2f}", f"at most {limit:g}", is_kept=value <= limit)

    def _judge(self, promise: str, value: str, limit: str, *, is_kept: bool) -> None:
        print(f"  {'kept  ' if is_kept else 'MISSED'} {promise:<52} {value:>8}  ({limit})")
        if not is_kept:
            self.missed.append(promise)


def title(text: str) -> None:
    """Begin a section of the table."""
    print(f"\n{text}")


def row(name: str, values: Sequence[float], unit: str) -> float:
    """Print one line of the table, and return the median of its values."""
    median = statistics.median(values)
    digits = 0 if median >= 100 else 2
    spread = f"{min(values):,.{digits}f} to {max(values):,.{digits}f}"
    print(f"  {name:<28} {median:>10,.{digits}f} {unit:<8} {spread}")
    return median


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many percent of the values do not exceed."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
