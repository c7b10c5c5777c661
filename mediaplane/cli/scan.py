"""`mediaplane scan` and `mediaplane hash`: the two jobs that find duplicates."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import job_document, last_part
from mediaplane.cli.library import Slug
from mediaplane.cli.output import Json
from mediaplane.cli.progress import follow, outcome, succeeded
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.client import Client

NoWait = Annotated[
    bool,
    typer.Option("--no-wait", help="Only admit the job; some data plane will carry it out."),
]


AcceptNewRoot = Annotated[
    bool,
    typer.Option(
        "--accept-new-root",
        help="Another or an empty directory at the library's path is meant, not a lost disk.",
    ),
]


def add_to(app: typer.Typer) -> None:
    command(app, "scan", examples=["mediaplane scan holidays", "mediaplane scan holidays --json"])(
        scan
    )
    command(app, "hash", examples=["mediaplane hash", "mediaplane hash holidays"])(hash_files)


def scan(
    session: Session,
    slug: Slug,
    accept_new_root: AcceptNewRoot = False,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Find the new, changed and missing files of a library."""
    with session.client(works=not no_wait) as client:
        job = client.scan(slug, accept_new_root=accept_new_root)
        job = _finish(client, job, no_wait=no_wait, as_json=as_json)
        if as_json:
            output.json_document({"job": job_document(job)})
        elif not no_wait and succeeded(job):
            found = client.library(slug).last_scan
            output.say(
                f"{output.plural(found.seen_files, 'file')},"
                f" {output.human_bytes(found.seen_bytes)}:"
                f" {output.human_count(found.new_files)} new,"
                f" {output.human_count(found.changed_files)} changed,"
                f" {output.human_count(found.missing_files)} missing,"
                f" {output.human_count(found.errored_files)} unreadable"
            )
    _exit_by(job, no_wait=no_wait)


def hash_files(
    session: Session,
    slug: Annotated[
        str, typer.Argument(metavar="SLUG", help="One library; all of them by default.")
    ] = "-",
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Find duplicates: read files that may be equal and hash them."""
    with session.client(works=not no_wait) as client:
        job = _finish(client, client.hash(slug), no_wait=no_wait, as_json=as_json)
        if as_json:
            output.json_document({"job": job_document(job)})
        elif not no_wait and succeeded(job):
            output.say(f"{output.plural(job.processed_items, 'file')} hashed")
    _exit_by(job, no_wait=no_wait)


def _finish(client: "Client", job: Any, *, no_wait: bool, as_json: bool) -> Any:
    if not no_wait:
        return follow(client, job.name, is_shown=not as_json)
    if not as_json:
        output.say(f"Admitted {job.name}. Follow it: mediaplane job watch {last_part(job.name)}")
    return job


def _exit_by(job: Any, *, no_wait: bool) -> None:
    if not no_wait and not succeeded(job):
        output.tell(f"Error: {job.name} {outcome(job)}")
        raise typer.Exit(1)
