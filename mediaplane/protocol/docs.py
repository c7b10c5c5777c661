"""Writes the generated sections of docs/PROTOCOL.md, or checks that they are current.

The prose stands in the document itself; between `<!-- generated: NAME -->` and `<!-- end -->`
stands what is derived from the protocol, so that it cannot say anything else.
"""

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Index, Table, UniqueConstraint

from mediaplane.protocol import values
from mediaplane.protocol.lifecycle import Machine, Step
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.tables import metadata
from mediaplane.protocol.write_paths import WRITE_PATHS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "PROTOCOL.md"

_SECTION = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What each unique key stands for. A new one is not documented until it is said here.
_GUARANTEES = {
    "ix_jobs_single_active_scan_hash": "At most one scan or hash job is pending or running.",
    "uq_jobs_request": "A request that is repeated makes no second job.",
    "uq_ai_models_name_version": "A version of a model has one identity.",
    "uq_assets_library_id_rel_path": "A path of a library is one asset.",
    "uq_job_items_job_id_item_key": "A shard is not added to a job twice.",
    "uq_library_files_library_id_rel_path": "A path of a library is one file.",
    "uq_scan_sessions_job_id_lease_epoch": "A claim of a scan job reports through one session.",
    "uq_thumbnails_file_id_file_version_size_px_format": "A picture is made once per file version,"
    " size and format.",
    "uq_tokens_token_hash": "A token is one row, found by its hash.",
    "uq_video_frames_asset_id_timestamp_ms": "A moment of a video is one frame.",
    "ix_wal_maintenance_jobs_single_open": "At most one checkpoint has not ended.",
    "uq_wal_maintenance_jobs_request": "A request that is repeated makes no second checkpoint.",
}


def document(current: str) -> str:
    """Return the document with its generated sections written anew."""

    def renew(match: re.Match[str]) -> str:
        lines = "\n".join(_SECTIONS[match[2]]())
        return f"{match[1]}\n{lines}\n\n{match[3]}"

    return _SECTION.sub(renew, current)


def main(arguments: list[str]) -> int:
    """Write the document, or with --check say how it differs."""
    current = DOCUMENT.read_text(encoding="utf-8")
    renewed = document(current)
    if "--check" not in arguments:
        DOCUMENT.write_text(renewed, encoding="utf-8")
        return 0
    difference = difflib.unified_diff(
        current.splitlines(), renewed.splitlines(), "docs/PROTOCOL.md", "generated", lineterm=""
    )
    lines = list(difference)
    if lines:
        sys.stderr.write("\n".join([*lines, "docs/PROTOCOL.md has drifted: run make docs", ""]))
    return 1 if lines else 0


def _values() -> Iterator[str]:
    columns: dict[str, list[str]] = {}
    for table in metadata.tables.values():
        for column in table.columns:
            if "legal" in column.info:
                name = column.info["legal"].__name__
                columns.setdefault(name, []).append(f"`{table.name}.{column.name}`")
    yield from _table("value set", "legal values", "columns", "meaning")
    for name, item in vars(values).items():
        if inspect.isclass(item) and issubclass(item, StrEnum) and item is not StrEnum:
            used = ", ".join(columns.get(name, ["(in code only)"]))
            yield _row(name, _codes(item), used, inspect.getdoc(item) or "")


def _machines() -> Iterator[str]:
    for machine in MACHINES:
        yield f"### `{machine.name}`"
        yield ""
        yield f"Claimed in the order `{machine.claim_order}`."
        yield ""
        yield from _diagram(machine)
        yield ""
        yield from _table("step", "plane", "from", "to", "lease", "legal when", "columns", "events")
        yield from (_step_row(step) for step in machine.steps)
        yield ""


def _step_row(step: Step) -> str:
    target = f"`{step.target}`" if step.target else "as it is"
    events = ", ".join(f"`{event}`" for event in step.events)
    return _row(
        f"`{step.name}`",
        step.plane,
        _codes(step.sources),
        target,
        step.lease,
        _legal_when(step),
        _codes(sorted(step.writes)),
        events,
    )


def _legal_when(step: Step) -> str:
    conditions = []
    if step.due:
        conditions.append(f"`{step.due} <= now`")
    if step.when:
        conditions.append(f"`{step.when.format(now='now')}`")
    return " and ".join(conditions)


def _diagram(machine: Machine) -> Iterator[str]:
    edges: dict[tuple[str, str], list[str]] = {}
    for step in machine.steps:
        for source in step.sources:
            edges.setdefault((source, step.target or source), []).append(step.name)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    [*] --> pending"
    for (source, target), names in edges.items():
        yield f"    {source} --> {target}: {', '.join(names)}"
    yield from (f"    {status} --> [*]" for status in machine.final)
    yield "```"


def _write_paths() -> Iterator[str]:
    yield from _table("table", "path", "may update", "may insert", "may delete")
    for path in sorted(WRITE_PATHS, key=lambda path: path.table):
        yield _row(
            f"`{path.table}`",
            f"`{path.name}`",
            _codes(sorted(path.updates)),
            _codes(sorted(path.inserts)),
            "rows" if path.deletes else "",
        )


def _invariants() -> Iterator[str]:
    yield from _table("table", "unique key", "on", "guarantees")
    for table in metadata.sorted_tables:
        for name, columns in sorted(_unique_keys(table)):
            yield _row(f"`{table.name}`", f"`{name}`", columns, _GUARANTEES[name])


def _unique_keys(table: Table) -> Iterator[tuple[str, str]]:
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            columns = constraint.columns.keys()
            yield f"uq_{table.name}_{'_'.join(columns)}", _codes(columns)
    for index in table.indexes:
        if index.unique:
            where = index.dialect_options["postgresql"]["where"]
            yield str(index.name), f"{_codes(_expressions(index))} where `{where}`"


def _expressions(index: Index) -> list[str]:
    return [str(getattr(expression, "name", expression)) for expression in index.expressions]


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(*headings: str) -> Iterator[str]:
    yield _row(*headings)
    yield _row(*("---" for _ in headings))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace(chr(10), ' ') for cell in cells)} |"


_SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "values": _values,
    "machines": _machines,
    "write_paths": _write_paths,
    "invariants": _invariants,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
