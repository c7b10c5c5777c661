"""Counts what happens in this process, cheaply enough for the hottest path, for metrics to read."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Labels = tuple[str, ...]

# One for all figures: it is held for an addition and no longer.
_LOCK = threading.Lock()


class Counter:
    """Figures that only grow, one for each combination of label values."""

    def __init__(
        self, name: str, meaning: str, labels: Labels = (), known: Iterable[Labels] = ()
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = labels
        # A rate needs the zero from which a figure rose: those that are known stand there at once.
        self._figures: dict[Labels, float] = dict.fromkeys(known if labels else [()], 0)

    def add(self, *values: str, amount: float = 1) -> None:
        """Add to the figure of these label values."""
        with _LOCK:
            self._figures[values] = self._figures.get(values, 0) + amount

    def figures(self) -> dict[Labels, float]:
        """Return all figures as they are now."""
        with _LOCK:
            return dict(self._figures)


@dataclass
class Distribution:
    """How many observations fell below each bound, and between the last and infinity."""

    counts: list[int]
    total: float = 0.0


@dataclass
class Histogram:
    """Distributions of durations, one for each combination of label values."""

    name: str
    meaning: str
    bounds: Sequence[float]
    labels: Labels = ()
    known: Iterable[Labels] = ()
    _distributions: dict[Labels, Distribution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for values in self.known if self.labels else [()]:
            self._distributions[values] = self._empty()

    def observe(self, *values: str, seconds: float) -> None:
        """Add an observation to the distribution of these label values."""
        self.observe_all(*values, seconds=(seconds,))

    def observe_all(self, *values: str, seconds: Sequence[float]) -> None:
        """Add observations, for little more than one of them costs."""
        with _LOCK:
            found = self._distributions.get(values)
            if found is None:
                found = self._distributions[values] = self._empty()
            for one in seconds:
                found.counts[bisect_left(self.bounds, one)] += 1
            found.total += sum(seconds)

    def distributions(self) -> dict[Labels, Distribution]:
        """Return all distributions as they are now."""
        with _LOCK:
            return {
                values: Distribution(list(one.counts), one.total)
                for values, one in self._distributions.items()
            }

    def _empty(self) -> Distribution:
        return Distribution([0] * (len(self.bounds) + 1))
