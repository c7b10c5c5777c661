"""Reads the dumps of a flight log as an operator does: entry by entry."""

from pathlib import Path


def entries(dump: Path) -> list[str]:
    """Return the entries of a dump, each with its further lines."""
    about, *lines = dump.read_text().removesuffix("\n").split("\n")
    found: list[str] = []
    for line in lines:
        if line.startswith(" "):
            found[-1] += "\n" + line
        else:
            found.append(line)
    assert f" {len(found)} entries" in about
    return found


def messages(dump: Path) -> list[str]:
    """Return the entries without time, level, thread and source."""
    return [entry.partition(": ")[2] for entry in entries(dump)]
