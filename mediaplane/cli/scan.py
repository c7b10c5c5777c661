"""`mediaplane scan` and `mediaplane hash`: the two jobs that find duplicates."""

from typing import Annotated

import typer

from mediaplane.cli import output, tenants
from mediaplane.cli.arguments import AcceptNewRoot, Slug
from mediaplane.cli.documents import job_document
from mediaplane.cli.output import Json
from mediaplane.cli.progress import exit_by, finish, succeeded
from mediaplane.cli.session import Session, command

NoWait = Annotated[
    bool,
    typer.Option("--no-wait", help="Only admit the job; some data plane will carry it out."),
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
        job = finish(client, job, no_wait=no_wait, as_json=as_json)
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
    exit_by(job, no_wait=no_wait)


def hash_files(
    session: Session,
    slug: Annotated[
        str, typer.Argument(metavar="SLUG", help="One library; all of them by default.")
    ] = "-",
    tenant: Annotated[
        str,
        typer.Option(
            "--tenant",
            help="Whose libraries, if you see every tenant; else your own.",
            show_default=False,
        ),
    ] = "",
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Find duplicates: read files that may be equal and hash them."""
    with session.client(works=not no_wait) as client:
        asked = client.hash(slug, tenant)
        tenants.check(tenant, asked)
        job = finish(client, asked, no_wait=no_wait, as_json=as_json)
        if as_json:
            output.json_document({"job": job_document(job)})
        elif not no_wait and succeeded(job):
            output.say(f"{output.plural(job.processed_items, 'file')} hashed")
    exit_by(job, no_wait=no_wait)
