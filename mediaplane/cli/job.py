"""`mediaplane job`: what was, is and will be done."""

from typing import Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import document, enum_name, job_document, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.progress import activity, follow, outcome, succeeded
from mediaplane.cli.session import Session, command

app = typer.Typer(name="job", no_args_is_help=True, help="Show and steer the work.")

STATES = ("pending", "running", "completed", "failed", "cancelled", "retryable", "skipped")
KINDS = ("scan", "hash", "delete", "thumbnail")

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
