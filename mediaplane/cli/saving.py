"""Writes what a server sends to a file, as a whole or not at all, and never into a library."""

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.paths import display

if TYPE_CHECKING:
    from mediaplane.client import Client

# Of at most four bytes each: with what is added, a name of no more than 255 bytes.
_PART_CHARS = 60


def checked(target: str | None) -> str | None:
    """Refuse what cannot become a file, before anything is done for it."""
    problem = target is not None and target != "-" and _problem(target)
    if problem:
        raise typer.BadParameter(problem)
    return target


def _problem(target: str) -> str:
    if not target:
        return "the name of a file is missing."
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        return f"the folder {display(os.fsencode(folder))} does not exist."
    if os.path.isdir(target):
        return f"{display(os.fsencode(target))} is a directory; name a file in it."
    try:
        os.lstat(target)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _unwritable(target, error)
    return ""


Target = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to write; - is the standard output.",
        callback=checked,
    ),
]  # fmt: skip


def save(chunks: Iterator[Any], target: str) -> int:
    """Write a stream of content to a file; returns its size."""
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    first = next(chunks)  # what is refused leaves no trace
    written = 0
    with opened(target) as sink:
        for chunk in chain([first], chunks):
            written += sink.write(chunk.data)
        if written != first.size_bytes:
            raise CommandFailed(
                f"Only {written} of {first.size_bytes} bytes came in; ask for it again."
            )
    _tell_type(target, first.content_type)
    return written


def _tell_type(target: str, content_type: str) -> None:
    """Say what was written where the name says something else."""
    from mimetypes import MimeTypes  # noqa: PLC0415 - slow, and most commands write nothing

    # Not by what this system adds to the table: what is told is the same everywhere.
    said, _ = MimeTypes(()).guess_type(target, strict=False)
    if said and content_type and said != content_type:
        shown = display(os.fsencode(target))
        output.tell(f"{shown} is of the type {content_type}, whatever its name says.")


def check_json(target: str, *, as_json: bool) -> None:
    """Refuse to write two things to the standard output."""
    if as_json and target == "-":
        raise typer.BadParameter(
            "--json goes to the standard output as well; name a file.", param_hint="--output"
        )


def report(target: str, size_bytes: int, about: dict[str, Any], *, as_json: bool) -> None:
    """Tell what was written, unless it is all on the standard output."""
    shown = display(os.fsencode(target))
    if as_json:
        output.json_document({**about, "output": shown, "output_bytes": size_bytes})
    elif target != "-":
        output.say(f"Wrote {shown}, {output.human_bytes(size_bytes)}")


def check_is_outside(client: "Client", target: str) -> None:
    """Refuse to write into a library."""
    if target == "-":
        return
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    # Not by abspath, which takes '..' for the way back also behind a link.
    folder = os.fsencode(os.path.realpath(os.path.dirname(target) or ".")) + b"/"
    # What is in the trash can be restored.
    for library in chain(client.libraries(), client.libraries(in_trash=True)):
        if folder.startswith(os.path.realpath(library.root_path).rstrip(b"/") + b"/"):
            raise CommandFailed(
                f"{display(os.fsencode(target))} lies in the library"
                f" {library.name.removeprefix('libraries/')}, in which nothing is ever written;"
                " choose another place."
            )


@contextmanager
def opened(target: str) -> Iterator[IO[bytes]]:
    """Open what gets its content when all of it is there; `-` is the standard output."""
    if target == "-":
        yield sys.stdout.buffer
        return
    from mediaplane.client import CommandFailed  # noqa: PLC0415 - imports gRPC

    is_new = not os.path.exists(target) or _is_replaceable(target)
    try:
        with _whole(target) if is_new else open(target, "wb") as sink:
            yield sink
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandFailed(_unwritable(target, error)) from None


@contextmanager
def _whole(target: str) -> Iterator[IO[bytes]]:
    # Complete before it has its name: nobody takes half a picture for a whole one.
    folder, name = os.path.split(target)
    part = os.path.join(folder, f"{name[:_PART_CHARS]}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as sink:
            yield sink
        os.replace(part, target)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _unwritable(target: str, error: OSError) -> str:
    return f"{display(os.fsencode(target))} cannot be written: {error.strerror or error}"


def _is_replaceable(target: str) -> bool:
    """Tell files from devices, pipes and names of what is open, such as /dev/stdout."""
    folder = os.path.realpath(os.path.dirname(target) or ".") + "/"
    is_open = os.path.islink(target) and folder.startswith(("/dev/", "/proc/"))
    return stat.S_ISREG(os.stat(target).st_mode) and not is_open
