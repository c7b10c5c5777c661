"""`mediaplane job`: what was, is and will be done."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output, probe
from mediaplane.cli.documents import document, enum_name, job_document, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.progress import activity, follow, outcome, succeeded
from mediaplane.cli.session import Session, command
from mediaplane.protocol.values import JobKind, JobStatus

if TYPE_CHECKING:
    from mediaplane.client import Client

app = typer.Typer(name="job", no_args_is_help=True, help="Show and steer the work.")

STATES = tuple(map(str, JobStatus))
KINDS = tuple(map(str, JobKind))

JobId = Annotated[str, typer.Argument(metavar="ID", help="The number that `job list` shows.")]


@command(
    app,
    "list",
    examples=[
        "mediaplane job list --limit 10",
        "mediaplane job list --only pending --only running",
        "mediaplane job list --kind scan --only failed --json",
    ],
)
def list_jobs(
    session: Session,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="STATE", help=f"Jobs in this state: {', '.join(STATES)}."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help=f"Jobs of this kind: {', '.join(KINDS)}."),
    ] = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the jobs, newest first."""
    _check("--only", only or [], STATES)
    _check("--kind", kind or [], KINDS)
    with session.client() as client:
        output.listing(
            client.jobs(only or (), kind or (), limit),
            noun="jobs",
            columns=["ID", "KIND", "STATE", "LIBRARY", ">DONE", "CREATED", "REMARK"],
            cells=_cells,
            document=job_document,
            as_json=as_json,
            empty="No jobs.",
        )


@command(app, "show", examples=["mediaplane job show 12", "mediaplane job show 12 --items --json"])
def show(
    session: Session,
    job_id: JobId,
    items: Annotated[
        bool, typer.Option("--items", help="Also show the pieces that the job was cut into.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one job and what happened to it."""
    with session.client() as client:
        job = client.job(job_id)
        events = list(client.events(job_id))
        pieces = list(client.job_items(job_id)) if items else []
    if as_json:
        found = {**job_document(job), "events": [document(event) for event in events]}
        if items:
            found["items"] = [document(piece) for piece in pieces]
        output.json_document({"job": found})
        return
    output.record(_fields(job))
    for event in events:
        output.say(f"  {local_time(event, 'create_time')}  {event.type}")
    for piece in pieces:
        remark = f"  {piece.message}" if piece.message else ""
        output.say(
            f"  item {last_part(piece.name)}  {enum_name(piece, 'state')}"
            f"  {piece.processed_items}/{piece.total_items}{remark}"
        )


@command(app, "watch", examples=["mediaplane job watch 12"])
def watch(session: Session, job_id: JobId, as_json: Json = False) -> None:
    """Follow a job until it ends.

    Exits with 1 when the job failed or was cancelled.
    """
    with session.client(works=True) as client:
        job = follow(client, job_id, is_shown=not as_json)
    _report(job, as_json=as_json)
    if not succeeded(job):
        raise typer.Exit(1)


@command(
    app,
    "events",
    examples=[
        "mediaplane job events 12",
        "mediaplane job events --after 4711 --json",
        "mediaplane job events --follow",
    ],
)
def events(
    session: Session,
    job_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Only of this job.", show_default=False),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="EVENT", help="Only what came after this event."),
    ] = None,
    is_followed: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Show what happens from now on, or since --after, as it happens;"
            " with --json one document a line.",
        ),
    ] = False,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List what happened, oldest first.

    With --follow the list goes on until the job has ended, or for ever without an ID.
    """
    with session.client(works=is_followed) as client:
        if is_followed:
            for event in islice(_news(client, job_id, after), limit):
                _tell(event, as_json=as_json)
            return
        output.listing(
            client.events(job_id or "-", limit, after or 0),
            noun="events",
            columns=["EVENT", "JOB", "TIME", "TYPE", "DETAILS"],
            cells=_event_cells,
            document=document,
            as_json=as_json,
            empty="No events.",
        )


@command(app, "cancel", examples=["mediaplane job cancel 12"])
def cancel(session: Session, job_id: JobId, as_json: Json = False) -> None:
    """Ask a job to stop; what it has done stays done."""
    with session.client() as client:
        job = client.cancel_job(job_id)
    if job.cancel_requested and enum_name(job, "state") == "running" and not as_json:
        output.say(f"{job.name} was asked to stop and will when its worker sees it.")
    else:
        _report(job, as_json=as_json)


@command(app, "retry", examples=["mediaplane job retry 12"])
def retry(session: Session, job_id: JobId, as_json: Json = False) -> None:
    """Do a failed, cancelled or skipped job again, as a new job."""
    with session.client() as client:
        job = client.retry_job(job_id)
    if as_json:
        _report(job, as_json=True)
        return
    output.say(f"Admitted {job.name}. Follow it: mediaplane job watch {last_part(job.name)}")


def _news(client: "Client", job_id: str | None, after: int | None) -> Iterator[Any]:
    for message in client.watch([job_id] if job_id else [], after):
        if message.HasField("event"):
            yield message.event


def _tell(event: Any, *, as_json: bool) -> None:
    if as_json:
        output.json_line(document(event))
    else:
        output.say("  ".join(_event_cells(event)).rstrip())
    sys.stdout.flush()


def _event_cells(event: Any) -> list[str]:
    details = document(event)["payload"]
    return [
        str(event.id),
        event.name.split("/")[1],
        local_time(event, "create_time"),
        event.type,
        json.dumps(details, ensure_ascii=False, sort_keys=True) if details else "",
    ]


def _check(option: str, given: list[str], known: tuple[str, ...]) -> None:
    for value in given:
        if value not in known:
            raise typer.BadParameter(
                f"{value!r} is not one of {', '.join(known)}.", param_hint=option
            )


def _report(job: Any, *, as_json: bool) -> None:
    if as_json:
        output.json_document({"job": job_document(job)})
    else:
        output.say(f"{job.name} {outcome(job)}")


def _cells(job: Any) -> list[str]:
    remark = job.skip_reason or job.error_message or job.error_code
    if job.cancel_requested and enum_name(job, "state") == "running":
        remark = "asked to stop"
    return [
        last_part(job.name),
        enum_name(job, "kind"),
        enum_name(job, "state"),
        last_part(job.library) or "all",
        f"{job.progress:.0%}" if job.progress else output.human_count(job.processed_items),
        local_time(job, "create_time"),
        remark,
    ]


def _fields(job: Any) -> list[tuple[str, str]]:
    total = f" of {output.human_count(job.total_items)}" if job.total_items else ""
    return [
        ("Job", last_part(job.name)),
        ("What", activity(job)),
        ("State", outcome(job)),
        ("Files", f"{output.human_count(job.processed_items)}{total}"),
        ("To read", output.human_bytes(job.total_bytes) if job.total_bytes else ""),
        ("Progress", f"{job.progress:.1%}"),
        ("Attempts", f"{job.attempts} of {job.max_attempts}"),
        ("Last error", job.error_message or job.error_code),
        ("Worker", job.worker),
        ("Retry of", last_part(job.retry_of)),
        ("Created", local_time(job, "create_time")),
        ("Started", local_time(job, "start_time")),
        ("Ended", local_time(job, "end_time")),
        ("Next attempt", local_time(job, "retry_time")),
    ]


probe.add_to(app)
