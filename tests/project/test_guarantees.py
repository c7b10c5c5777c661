"""Every promise names tests, and they exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("GUARANTEES.md", "UPGRADING.md")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows(document: str) -> list[str]:
    """The rows of the tables that name tests."""
    found = []
    names_tests = False
    for line in (ROOT / "docs" / document).read_text().splitlines():
        if line.startswith("| ") and line.endswith(("| how it is tested |", "| where |")):
            names_tests = True
        elif not line.startswith("|"):
            names_tests = False
        elif names_tests and not line.startswith("|---"):
            found.append(line)
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_promise_names_a_test(document: str) -> None:
    assert len(rows(document)) >= 6
    assert [row for row in rows(document) if not _TEST.search(row)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_is_named_exists(document: str) -> None:
    named = _TEST.findall((ROOT / "docs" / document).read_text())
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).exists() or f"def {name}(" not in (ROOT / path).read_text()
    ]
    assert missing == []
