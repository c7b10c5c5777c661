"""`mediaplane db`: the database itself, without a server in between."""

from typing import TYPE_CHECKING

import typer

from mediaplane.cli import backup, checkpoint, output
from mediaplane.cli.output import Json
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.locations import Locations

app = typer.Typer(name="db", no_args_is_help=True, help="Look after the database.")


@command(
    app,
    "upgrade",
    examples=[
        "mediaplane db upgrade",
        "MEDIAPLANE_DATABASE_URL=postgresql://media@db/media mediaplane db upgrade",
    ],
    talks=False,
)
def upgrade(session: Session) -> None:
    """Bring the database to the schema of this version.

    Safe to repeat and to interrupt.
    """
    from mediaplane.protocol import grants, migration  # noqa: PLC0415 - takes long to import

    locations = _prepared(session)
    before = migration.current(locations.database_url)
    migration.upgrade(locations.database_url)
    grants.apply_grants(locations.database_url)
    after = migration.current(locations.database_url)
    if before == after:
        output.say(f"The database is up to date: {after}")
    else:
        output.say(f"Upgraded from {before or 'nothing'} to {after}")


@command(
    app, "status", examples=["mediaplane db status", "mediaplane db status --json"], talks=False
)
def status(session: Session, as_json: Json = False) -> None:
    """Show which database is used and whether it is current.

    Exits with 1 when its schema is not the one of this version.
    """
    from sqlalchemy.engine import make_url  # noqa: PLC0415 - takes long to import

    from mediaplane.protocol import migration  # noqa: PLC0415

    locations = _prepared(session)
    revision = migration.current(locations.database_url)
    newest = migration.head()
    is_current = revision == newest
    shown = make_url(locations.database_url).render_as_string(hide_password=True)
    if as_json:
        output.json_document(
            {"database": shown, "revision": revision, "head": newest, "is_current": is_current}
        )
    else:
        output.record(
            [
                ("Database", shown),
                ("Revision", revision or "none"),
                ("Newest", newest),
                ("Current", "yes" if is_current else "no; run: mediaplane db upgrade"),
            ]
        )
    if not is_current:
        raise typer.Exit(1)


@command(app, "grant", examples=["mediaplane db grant"], talks=False)
def grant(session: Session) -> None:
    """Set the rights of the data plane's PostgreSQL role.

    Part of every upgrade; needed alone when a role was dropped or changed by hand.
    """
    from mediaplane.protocol import grants  # noqa: PLC0415 - takes long to import

    url = _prepared(session).database_url
    grants.apply_grants(url)
    if url.startswith("sqlite"):
        output.say("SQLite has no roles; each connection of a data plane is guarded instead.")
    else:
        output.say("The rights of the data plane's role are set.")


def _prepared(session: Session) -> "Locations":
    locations = session.locations
    locations.prepare()
    return locations


backup.add_to(app)
checkpoint.add_to(app)
