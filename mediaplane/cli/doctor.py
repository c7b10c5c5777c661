"""`mediaplane doctor`: is this installation well, and what to do if not?"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from mediaplane.cli import output
from mediaplane.cli.output import Json
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.doctor.finding import Finding

_CANNOT_CHECK = 2


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "doctor",
        examples=["mediaplane doctor", "mediaplane doctor --json"],
        talks=False,
    )(doctor)


def doctor(session: Session, as_json: Json = False) -> None:
    """Look for what is wrong with this installation, and say what to do about it.

    It looks at versions, the database, permissions, library folders, disk space, clocks, decoders,
    addresses, certificates and workers, whether the planes run or not. It changes nothing. Exits
    with 1 when there is a problem, and with 2 when it cannot look.
    """
    from dataclasses import asdict  # noqa: PLC0415 - the rest of the command line does without

    from mediaplane.doctor.finding import Level  # noqa: PLC0415

    found = []
    for finding in _findings(session):
        found.append(finding)
        if not as_json:
            _show(finding)
    problems = sum(one.level is Level.PROBLEM for one in found)
    warnings = sum(one.level is Level.WARNING for one in found)
    if as_json:
        output.json_document(
            {"is_well": not problems, "findings": [asdict(finding) for finding in found]}
        )
    else:
        output.say(f"{output.plural(problems, 'problem')}, {output.plural(warnings, 'warning')}.")
    if problems:
        raise typer.Exit(1)


def _findings(session: Session) -> "Iterator[Finding]":
    from mediaplane.doctor.examination import examine  # noqa: PLC0415 - takes long to import
    from mediaplane.errors import UnusableSettings  # noqa: PLC0415

    try:
        locations = session.locations
    except UnusableSettings as error:
        output.tell(f"Error: {error}")
        raise typer.Exit(_CANNOT_CHECK) from None
    yield from examine(locations, os.environ)


def _show(finding: "Finding") -> None:
    output.say(f"{finding.level:<8} {finding.check:<12} {finding.message}")
    if finding.advice:
        output.say(f"{'':<21} {finding.advice}")
