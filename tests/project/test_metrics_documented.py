"""Every metric stands in the operator's manual, with its plane, its type and its meaning."""

from collections import Counter
from pathlib import Path

import grpc
import pytest
from prometheus_client.core import Metric

from mediaplane.calls import MAX_CODES, CallMeter
from mediaplane.metrics import MAX_LIBRARIES, Exposition
from mediaplane.protocol.values import Plane
from tests.support.databases import Databases
from tests.support.metrics import collectors, fill
from tests.support.scraping import read

MANUAL = (Path(__file__).parents[2] / "docs" / "OPERATIONS.md").read_text()
MAX_SERIES = 1000


def use_up_every_code(meter: CallMeter) -> None:
    """Have every method answer with every code and take a while."""
    for service, method, _ok in list(meter.handled.figures()):
        meter.latency.observe(service, method, seconds=1)
        for code in grpc.StatusCode:
            meter.note((service, method), code.name)


def test_the_manual_lists_every_metric_and_no_other(database: Databases, tmp_path: Path) -> None:
    fill(database, tmp_path)
    rows: dict[str, set[str]] = {}
    for plane, (collect, meter) in collectors(database, tmp_path / "state").items():
        use_up_every_code(meter)
        for family in collect():
            rows.setdefault(described(family), set()).add(plane)
    shown = {row.format(plane=", ".join(sorted(planes))) for row, planes in rows.items()}
    listed = {
        line for line in MANUAL.splitlines() if line.startswith(("| `mediaplane_", "| `grpc_"))
    }
    of_sqlite = {row for row in listed if "(SQLite)" in row}
    assert of_sqlite
    assert shown | of_sqlite == listed


def described(family: Metric) -> str:
    """The row of a metric in the manual, without its planes."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ",".join(label for label in family.samples[0].labels if label != "le")
    braces = f"{{{{{labels}}}}}" if labels else ""
    return f"| `{name}{braces}` | {{plane}} | {family.type} | {family.documentation} |"


@pytest.mark.parametrize("plane", list(Plane))
def test_a_process_never_has_more_series_than_it_may(
    database: Databases, tmp_path: Path, plane: Plane
) -> None:
    fill(database, tmp_path, libraries=MAX_LIBRARIES + 5)
    collect, meter = collectors(database, tmp_path / "state")[plane]
    use_up_every_code(meter)
    found = read(Exposition(collect).text())
    limited = {
        Plane.CONTROL: "mediaplane_library_root_up",
        Plane.DATA: "mediaplane_library_disk_free_bytes",
    }
    assert len(found[limited[plane]]) == MAX_LIBRARIES
    calls = Counter(method for _service, method, _code in found["grpc_server_handled_total"])
    assert set(calls.values()) == {MAX_CODES}
    assert sum(map(len, found.values())) <= MAX_SERIES
