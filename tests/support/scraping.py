"""Reads metrics as Prometheus does."""

import urllib.request
from collections.abc import Callable, Iterable

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from mediaplane.metrics import Exposition

Samples = dict[str, dict[tuple[str, ...], float]]


def read(text: bytes) -> Samples:
    """Every sample by its name and the values of its labels, which Prometheus sorts by name."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def told(collect: Callable[[], Iterable[Metric]]) -> Samples:
    """What a process tells at this moment."""
    return read(Exposition(collect).text())


def scrape(url: str) -> Samples:
    with urllib.request.urlopen(url, timeout=180) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        return read(response.read())


def grown(before: Samples, after: Samples, name: str) -> dict[tuple[str, ...], float]:
    """What was added to the figures of a metric, where anything was."""
    was = before.get(name, {})
    rise = {labels: now - was.get(labels, 0) for labels, now in after.get(name, {}).items()}
    return {labels: by for labels, by in rise.items() if by}
