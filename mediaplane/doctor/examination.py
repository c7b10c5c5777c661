"""All that the doctor looks at, in the order in which one thing depends on another."""

import platform
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.exc import DBAPIError

from mediaplane import __version__
from mediaplane.client import Client, translated
from mediaplane.doctor import certificates, database, decoding, roots, serving, state, workers
from mediaplane.doctor.finding import Finding, Level, ok, problem
from mediaplane.locations import Locations
from mediaplane.protocol.database import explain


def examine(locations: Locations, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what was found, as it is found; nothing is changed."""
    yield ok("python", f"mediaplane {__version__} on Python {platform.python_version()}.")
    yield database.look_at_library()
    yield from state.look(locations)
    with Client(locations.local_control_address, locations.local_data_address) as client:
        answers = serving.Answers(client)
        yield from serving.look(locations, answers, environ)
        yield from certificates.look(environ)
        libraries = yield from _examine_database(locations)
        paths = [bytes(row.absolute_path) for row in libraries or ()]
        checkup = decoding.check_up(locations, [] if answers.has_data else paths)
        yield from decoding.look(checkup)
        if libraries is None:
            return
        if answers.has_data:
            # The folders as those see them who scan them; they may be on another machine.
            with translated(locations.local_data_address):
                yield from roots.look(libraries, [client.probe_root(path) for path in paths])
        elif checkup.answer:
            yield from roots.look(libraries, checkup.roots)


def _examine_database(locations: Locations) -> Generator[Finding, None, Sequence[Any] | None]:
    """Look at the database, and return the libraries that are in it; None when that is unknown."""
    url, findings = database.usable_url(locations.database_url)
    yield from findings
    if url is None:
        return None if any(one.level is Level.PROBLEM for one in findings) else []
    try:
        with database.opened(url) as conn:
            findings = list(database.look(conn))
            yield from findings
            if database.is_current(findings):
                libraries = roots.known(conn)
                yield from workers.look(conn)
                return libraries
    except DBAPIError as error:
        advice = "Restore a backup if the file is damaged; else try again."
        yield problem("database", f"It could not be read: {explain(error)}.", advice)
    return None
