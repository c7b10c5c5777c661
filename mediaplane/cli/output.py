"""Shows rows and records: tables on a terminal, plain text in a pipe, JSON on demand."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", help="Show only the first N.", show_default=False),
]
Cells = Sequence[str]

# Widths are found per batch, so that a listing of millions neither waits nor fills the memory.
_BATCH_ROWS = 500
_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def tell(message: str) -> None:
    """Say something that is not the result: on the standard error output."""
    sys.stdout.flush()
    sys.stderr.write(printable(message, keep_lines=True) + "\n")
    sys.stderr.flush()


def say(line: str = "") -> None:
    """Print one line of the result."""
    _write(printable(line) + "\n")


def listing(
    rows: Iterable[Any],
    *,
    noun: str,
    columns: Sequence[str],
    cells: Callable[[Any], Cells],
    document: Callable[[Any], dict[str, Any]],
    as_json: bool,
    empty: str,
) -> None:
    """Show a listing; `columns` whose title starts with '>' are aligned to the right."""
    if as_json:
        json_listing(noun, map(document, rows))
        return
    batches = _batches(map(cells, rows))
    first = next(batches, None)
    if first is None:
        if is_terminal():
            say(empty)
        return
    show = _rich_table if is_terminal() else _plain_table
    widths = [0] * len(columns)
    show(columns, first, widths, with_header=True)
    for batch in batches:
        show(columns, batch, widths, with_header=False)


def record(fields: Iterable[tuple[str, str]]) -> None:
    """Show one thing, a line for each field that has a value."""
    shown = [(title, value) for title, value in fields if value]
    width = max((len(title) for title, _ in shown), default=0)
    for title, value in shown:
        say(f"{title:<{width}}  {value}")


def json_document(document: Any) -> None:
    _write_json(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def json_line(document: Any) -> None:
    """Write a document on a line of its own, for readers of a stream."""
    _write_json(json.dumps(document, ensure_ascii=False) + "\n")


def json_listing(noun: str, documents: Iterable[dict[str, Any]]) -> None:
    """Write {"noun": [...]} row by row as the pages come in."""
    _write_json(f'{{"{noun}": [')
    separator = "\n  "
    for document in documents:
        _write_json(separator + json.dumps(document, ensure_ascii=False))
        separator = ",\n  "
    _write_json("]}\n" if separator == "\n  " else "\n]}\n")


def human_bytes(size: float) -> str:
    """1.2 GiB; exact below one KiB."""
    unit = 0
    while abs(size) >= 1023.95 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def human_count(number: float) -> str:
    return f"{number:,.0f}"


def human_seconds(seconds: float) -> str:
    """9.5 s, 4 min 05 s, 2 h 07 min."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def plural(number: int, one: str, many: str = "") -> str:
    return f"{human_count(number)} {one if number == 1 else many or one + 's'}"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Escape what could move the cursor or fool the reader; printable text stays as it is."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or (keep_lines and char == "\n") else _escape(char)
        for char in text
    )


def console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - a pipe does without

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=False)


@contextmanager
def busy(message: str) -> Iterator[None]:
    """Show on a terminal that something takes a moment, and leave no trace of it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - a pipe does without

    with Console(stderr=True).status(message):
        yield


def _batches(rows: Iterator[Cells]) -> Iterator[list[Cells]]:
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield [[printable(cell) for cell in row] for row in batch]


def _rich_table(
    columns: Sequence[str], rows: list[Cells], widths: list[int], *, with_header: bool
) -> None:
    from rich.table import Table  # noqa: PLC0415 - a pipe does without
    from rich.text import Text  # noqa: PLC0415

    _widen(widths, columns, rows)
    table = Table(box=None, pad_edge=False, show_header=with_header, padding=(0, 2, 0, 0))
    for title, width in zip(columns, widths, strict=True):
        table.add_column(
            Text(title.removeprefix(">")),
            justify="right" if title.startswith(">") else "left",
            # File names and hashes are copied from the screen: no part of them may be missing.
            overflow="fold",
            min_width=min(width, 12),
            header_style="bold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def _plain_table(
    columns: Sequence[str], rows: list[Cells], widths: list[int], *, with_header: bool
) -> None:
    _widen(widths, columns, rows)
    titles = [title.removeprefix(">") for title in columns]
    for row in [titles, *rows] if with_header else rows:
        padded = (
            cell.rjust(width) if title.startswith(">") else cell.ljust(width)
            for title, cell, width in zip(columns, row, widths, strict=True)
        )
        _write("  ".join(padded).rstrip() + "\n")


def _widen(widths: list[int], columns: Sequence[str], rows: list[Cells]) -> None:
    for index, title in enumerate(columns):
        cells = (len(row[index]) for row in rows)
        widths[index] = max(widths[index], len(title.removeprefix(">")), max(cells, default=0))


def _escape(char: str) -> str:
    point = ord(char)
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _write_json(text: str) -> None:
    # JSON is UTF-8 whatever the terminal's encoding; lone surrogates cannot be and become '?'.
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
