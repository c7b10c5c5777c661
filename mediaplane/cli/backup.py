"""`mediaplane db backup` and `db restore`: copies of an SQLite database."""

from pathlib import Path
from typing import Annotated

import typer

from mediaplane.cli import output
from mediaplane.cli.output import Json
from mediaplane.cli.session import Session, command

Target = Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy is written.")]
Source = Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` has written.")]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "backup",
        examples=[
            "mediaplane db backup /backups/monday.db",
            "mediaplane db backup last.db --force",
        ],
        talks=False,
    )(backup)
    command(app, "restore", examples=["mediaplane db restore /backups/monday.db"], talks=False)(
        restore
    )


def backup(session: Session, target: Target, force: Force = False, as_json: Json = False) -> None:
    """Write a copy of the SQLite database to a file, also while both planes work.

    The copy is the database of one moment, checked and on the disk when the command ends; if
    anything goes wrong there is no file. PostgreSQL is copied by pg_dump.
    """
    from mediaplane.protocol.backup import back_up  # noqa: PLC0415 - takes long to import

    with output.busy("Copying the database ..."):
        made = back_up(session.locations.database_url, target, is_replacing=force)
    if as_json:
        output.json_document(
            {"path": str(made.path), "revision": made.revision, "size_bytes": made.size_bytes}
        )
    else:
        size = output.human_bytes(made.size_bytes)
        output.say(f"{made.path}: {size}, checked, with the schema {made.revision}")


def restore(session: Session, source: Source, as_json: Json = False) -> None:
    """Put a backup in the place of the SQLite database.

    Stop both planes first. The database that was there is kept beside it under another name. A
    backup of an older version is upgraded when the planes start; one that is damaged, of a newer
    version or of another program is refused, and then nothing is changed.
    """
    from mediaplane import planes  # noqa: PLC0415 - imports gRPC
    from mediaplane.protocol import backup as copies  # noqa: PLC0415

    locations = session.locations
    locations.prepare()
    with planes.turn(locations), output.busy("Restoring the database ..."):
        restored = copies.restore(locations.database_url, source)
    if as_json:
        kept = str(restored.kept) if restored.kept else None
        output.json_document({"revision": restored.revision, "kept": kept})
        return
    output.say(f"The database is that of {source}, with the schema {restored.revision}.")
    if restored.kept:
        output.say(f"The one before is kept as {restored.kept}")
