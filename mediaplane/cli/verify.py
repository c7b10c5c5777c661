"""`mediaplane verify`: finds files that the disk has damaged since they were hashed."""

from typing import TYPE_CHECKING, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.arguments import Slug
from mediaplane.cli.documents import file_document, job_document, library_of
from mediaplane.cli.output import Json
from mediaplane.cli.progress import exit_by, finish, succeeded
from mediaplane.cli.scan import NoWait
from mediaplane.cli.session import Session, command

if TYPE_CHECKING:
    from mediaplane.client import Client

_SHOWN_FILES = 20


def add_to(app: typer.Typer) -> None:
    examples = ["mediaplane verify holidays", "mediaplane verify holidays --json"]
    command(app, "verify", examples=examples)(verify)


def verify(session: Session, slug: Slug, no_wait: NoWait = False, as_json: Json = False) -> None:
    """Read the hashed files of a library again and compare them with their hashes.

    A file of other content whose size and time of change are as they were is damaged; the exit
    code is 1 when there is one.
    """
    with session.client(works=not no_wait) as client:
        job = finish(client, client.verify(slug), no_wait=no_wait, as_json=as_json)
        if no_wait:
            if as_json:
                output.json_document({"job": job_document(job)})
            return
        damaged, unreadable = _wrong_files(client, slug)
        if as_json:
            output.json_document(
                {
                    "job": job_document(job),
                    "damaged_files": [file_document(file) for file in damaged],
                    "unreadable_files": [file_document(file) for file in unreadable],
                }
            )
        else:
            _show_result(job, slug, len(damaged), len(unreadable))
            _show_damaged(client, slug, damaged)
    exit_by(job, no_wait=False)
    if damaged:
        raise typer.Exit(1)


def _wrong_files(client: "Client", slug: str) -> tuple[list[Any], list[Any]]:
    """The damaged and the unreadable files of a library; without a hash, it is no verdict."""
    damaged, unreadable = [], []
    for file in client.files(slug, has_error=True, include_missing=False):
        if file.error_code == "bit_rot":
            damaged.append(file)
        elif file.content_hash:
            unreadable.append(file)
    return damaged, unreadable


def _show_result(job: Any, slug: str, damaged: int, unreadable: int) -> None:
    if job.total_items == 0:
        output.say(
            f"No file of {slug} has a hash yet; make them with: mediaplane hash {slug}. Only"
            " possible duplicates are hashed unless the library wants all:"
            f" mediaplane library set {slug} --hash-policy all"
        )
        return
    output.say(
        f"{output.plural(job.processed_items, 'file')} verified,"
        f" {output.human_count(damaged)} damaged, {output.human_count(unreadable)} unreadable"
    )
    outdated = job.total_items - job.processed_items - unreadable
    if outdated > 0 and succeeded(job):
        output.say(
            f"{output.plural(outdated, 'file')} changed since the last scan and left out; look at"
            f" what is new with: mediaplane scan {slug}"
        )


def _show_damaged(client: "Client", slug: str, damaged: list[Any]) -> None:
    tenant = client.library(slug).tenant
    for file in damaged[:_SHOWN_FILES]:
        output.say(f"  {slug}: {file.rel_path_display}")
        copy = _sound_copy(client, file, tenant)
        if copy is not None:
            output.say(f"    another copy: {library_of(copy)}: {copy.rel_path_display}")
    more = len(damaged) - _SHOWN_FILES
    if more > 0:
        output.say(f"  and {output.human_count(more)} more: mediaplane file list {slug} --errors")
    if damaged:
        output.say("Restore them from a backup or another copy, then verify again.")


def _sound_copy(client: "Client", file: Any, tenant: str) -> Any:
    copies = client.duplicate_files(file.group_key, _SHOWN_FILES, tenant)
    return next((copy for copy in copies if not copy.error_code), None)
