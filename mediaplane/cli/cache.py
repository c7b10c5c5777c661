"""`mediaplane cache`: what mediaplane has made of the files of libraries."""

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import job_document
from mediaplane.cli.output import Json
from mediaplane.cli.progress import exit_by, finish, succeeded
from mediaplane.cli.scan import NoWait
from mediaplane.cli.session import Session, command

app = typer.Typer(
    name="cache", no_args_is_help=True, help="Keep thumbnails and other derivatives in order."
)


@command(
    app, "sweep", examples=["mediaplane cache sweep", "mediaplane cache sweep --no-wait --json"]
)
def sweep(session: Session, no_wait: NoWait = False, as_json: Json = False) -> None:
    """Remove thumbnails and other derivatives of files that are not known any more.

    Only what mediaplane has made is removed, from the cache in the state directory of the data
    plane that takes the job; no file of a library is touched. Exits with 1 when the job failed or
    was cancelled.
    """
    with session.client(works=not no_wait) as client:
        job = finish(client, client.sweep(), no_wait=no_wait, as_json=as_json)
    if as_json:
        output.json_document({"job": job_document(job)})
    elif not no_wait and succeeded(job):
        output.say(f"{output.plural(job.processed_items, 'file')} removed from the cache")
    exit_by(job, no_wait=no_wait)
