"""docs/PROTOCOL.md says what the protocol says."""

import re
from pathlib import Path

import pytest

from mediaplane.protocol import docs
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.schema import lease_columns
from mediaplane.protocol.write_paths import WRITE_PATHS


def test_the_generated_sections_are_current() -> None:
    assert docs.main(["--check"]) == 0


def test_every_step_and_every_path_is_documented() -> None:
    text = docs.DOCUMENT.read_text(encoding="utf-8")
    for machine in MACHINES:
        assert f"### `{machine.name}`" in text
        assert all(f"| `{step.name}` | {step.plane} |" in text for step in machine.steps)
    assert all(f"| `{path.table}` | `{path.name}` |" in text for path in WRITE_PATHS)


def test_the_columns_of_a_lease_are_documented() -> None:
    text = docs.DOCUMENT.read_text(encoding="utf-8")
    lease = text[text.index("## The lease") : text.index("## Machines")]
    documented = re.findall(r"^\| `(\w+_\w+)` \|", lease, re.MULTILINE)
    assert documented == [getattr(column, "name", None) for column in lease_columns()]


def test_drift_is_found_shown_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    current = docs.DOCUMENT.read_text(encoding="utf-8")
    drifted = tmp_path / "PROTOCOL.md"
    drifted.write_text(current.replace("`scan_req`", "`scan_request`"), encoding="utf-8")
    monkeypatch.setattr(docs, "DOCUMENT", drifted)
    assert docs.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "scan_request" in said
    assert "run make docs" in said
    assert docs.main([]) == 0
    assert drifted.read_text(encoding="utf-8") == current
