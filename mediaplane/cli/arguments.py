"""Arguments that several commands take."""

import os
from typing import Annotated

import typer

Slug = Annotated[
    str, typer.Argument(metavar="SLUG", help="The short name that `library list` shows.")
]
AcceptNewRoot = Annotated[
    bool,
    typer.Option(
        "--accept-new-root",
        help="Another or an empty directory at the library's path is meant, not a lost disk.",
    ),
]


def absolute(path: str) -> bytes:
    """The absolute path in the bytes of the file system; symbolic links stay as they are."""
    found = os.fsencode(os.path.abspath(path))
    # POSIX lets two leading slashes mean something else; on Linux they do not.
    return b"/" + found.lstrip(b"/")
