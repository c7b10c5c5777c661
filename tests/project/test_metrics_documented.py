"""Every metric stands in the operator's manual, with its labels and its meaning."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from control_plane.metrics import collect
from tests.support.databases import Databases
from tests.support.rows import Rows

MANUAL = (Path(__file__).parents[2] / "docs" / "OPERATIONS.md").read_text()


def test_the_manual_lists_every_metric_and_no_other(database: Databases) -> None:
    with database.control.write() as conn:
        Rows(conn).add("scan_sessions", status="succeeded")
    rows = set()
    for family in text_string_to_metric_families(collect(database.control).decode()):
        labels = ",".join(family.samples[0].labels)
        rows.add(f"| `{family.name}{{{labels}}}` | {family.documentation} |")
    listed = {line for line in MANUAL.splitlines() if line.startswith("| `mediaplane_")}
    assert rows == listed
