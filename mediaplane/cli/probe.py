"""`mediaplane job probe`: whether work is taken and done, and how fast."""

from typing import Annotated, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import job_document
from mediaplane.cli.output import Json
from mediaplane.cli.progress import follow, outcome, succeeded
from mediaplane.cli.session import Session, command


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "probe",
        examples=[
            "mediaplane job probe",
            "mediaplane job probe --seconds 0.5 --items 100",
            "mediaplane job probe --json",
        ],
    )(probe)


def probe(
    session: Session,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0, max=3600, metavar="S", help="How long the work takes."),
    ] = 0.0,
    items: Annotated[
        int,
        typer.Option(
            "--items",
            min=0,
            max=10_000,
            metavar="N",
            help="Cut it into so many pieces, each as long, which workers share.",
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Send a job of no use through the workers, and say how it fared.

    It touches no library. Exits with 1 when the job failed or was cancelled.
    """
    with session.client(works=True) as client:
        job = follow(client, client.create_probe(seconds, items).name, is_shown=not as_json)
    if as_json:
        output.json_document({"job": job_document(job)})
    elif succeeded(job):
        output.say(_course(job))
    else:
        output.say(f"{job.name} {outcome(job)}")
    if not succeeded(job):
        raise typer.Exit(1)


def _course(job: Any) -> str:
    waited, took = _span(job, "create_time", "start_time"), _span(job, "start_time", "end_time")
    pieces = f" with {output.plural(job.completed_items, 'item')}" if job.total_items else ""
    return f"{job.name}{pieces}: taken by {job.worker} after {waited}, done in {took}."


def _span(job: Any, first: str, last: str) -> str:
    """Milliseconds matter here: most probes take only a few."""
    spent = getattr(job, last).ToNanoseconds() - getattr(job, first).ToNanoseconds()
    return output.human_seconds(spent / 1e9) if spent >= 1e9 else f"{spent / 1e6:.0f} ms"
