"""Follows a job to its end, with a progress bar on a terminal."""

from typing import TYPE_CHECKING, Any

import typer

from mediaplane.cli import output
from mediaplane.cli.documents import enum_name, last_part

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID
    from rich.text import Text

    from mediaplane.client import Client

_ACTIVITIES = {
    "scan": "Scanning",
    "hash": "Hashing",
    "delete": "Deleting",
    "thumbnail": "Making thumbnails",
    "probe": "Probing",
    "verify": "Verifying",
    "sweep": "Sweeping the cache",
}


def follow(client: "Client", name: str, *, is_shown: bool) -> Any:
    """Wait until a job is in a final state and return it; draws when it may and can."""
    if is_shown and output.is_terminal():
        return _follow_with_bar(client, name)
    last = None
    for job in client.watch_job(name):
        last = job
    return last


def activity(job: Any) -> str:
    """'Scanning holidays'."""
    kind = enum_name(job, "kind")
    what = f" {last_part(job.library)}" if job.library else ""
    return f"{_ACTIVITIES.get(kind, kind)}{what}"


def outcome(job: Any) -> str:
    """What became of a job, for people: 'completed', 'failed: the root is empty'."""
    state = enum_name(job, "state")
    why = job.skip_reason or job.error_message or job.error_code
    return f"{state}: {why}" if why and state != "completed" else state


def succeeded(job: Any) -> bool:
    return enum_name(job, "state") in {"completed", "skipped"}


def finish(client: "Client", job: Any, *, no_wait: bool, as_json: bool) -> Any:
    """Follow an admitted job to its end, or say how to."""
    if not no_wait:
        return follow(client, job.name, is_shown=not as_json)
    if not as_json:
        output.say(f"Admitted {job.name}. Follow it: mediaplane job watch {last_part(job.name)}")
    return job


def exit_by(job: Any, *, no_wait: bool) -> None:
    """End the command with 1 when the job that it waited for has failed."""
    if not no_wait and not succeeded(job):
        output.tell(f"Error: {job.name} {outcome(job)}")
        raise typer.Exit(1)


def _follow_with_bar(client: "Client", name: str) -> Any:
    from rich import progress as bars  # noqa: PLC0415 - only a terminal needs it

    last = None
    expected_files = 0
    with bars.Progress(
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        _figures_column(),
        console=output.console(),
        transient=True,
    ) as progress:
        task = progress.add_task(f"Waiting for {name}", total=None, job=None, expected_files=0)
        for job in client.watch_job(name):
            if last is None:
                expected_files = _expected_files(client, job)
            last = job
            _advance(progress, task, job, expected_files)
    return last


def _expected_files(client: "Client", job: Any) -> int:
    """About how many files a scan will find: as many as the last good one; 0 before the first."""
    if enum_name(job, "kind") != "scan":
        return 0
    found = {row.library: row.files for row in client.statistics().libraries}
    return found.get(job.library, 0)


def _advance(progress: "Progress", task: "TaskID", job: Any, expected_files: int) -> None:
    description = output.printable(activity(job))
    state = enum_name(job, "state")
    if state in {"pending", "retryable"}:
        description += f" ({state})"
    if job.total_bytes:
        total, completed = job.total_bytes, job.progress * job.total_bytes
    else:
        total, completed = _total_items(job, expected_files), job.processed_items
    progress.update(
        task,
        description=description,
        total=total,
        completed=completed,
        job=job,
        expected_files=expected_files,
    )


def _figures_column() -> Any:
    from rich.progress import ProgressColumn  # noqa: PLC0415 - only a terminal needs it
    from rich.text import Text  # noqa: PLC0415

    class Figures(ProgressColumn):
        """Done, total, rate and time left, in the job's own unit."""

        def render(self, task: "Task") -> "Text":
            fields = task.fields
            shown = figures(fields["job"], task.completed, task.speed, fields["expected_files"])
            return Text(shown)

    return Figures()


def figures(job: Any, completed: float, speed: float | None, expected_files: int = 0) -> str:
    """The numbers beside the bar; `speed` is per second, in bytes when the job counts bytes."""
    if job is None:
        return ""
    counted = output.human_bytes if job.total_bytes else output.human_count
    total = job.total_bytes or _total_items(job, expected_files)
    parts = [_files(job, expected_files)]
    if job.total_bytes:
        parts.insert(0, f"{counted(completed)} of {counted(job.total_bytes)}")
    if speed:
        parts.append(f"{counted(speed)}/s")
    if speed and total:
        parts.append(f"{output.human_seconds(round((total - completed) / speed))} left")
    return "  ".join(parts)


def _total_items(job: Any, expected_files: int) -> int | None:
    """How many there will be, as far as anybody knows; None where more came than was expected."""
    if job.total_items:
        return int(job.total_items)
    return expected_files if job.processed_items < expected_files else None


def _files(job: Any, expected_files: int) -> str:
    total = _total_items(job, expected_files)
    if not total:
        return output.plural(job.processed_items, "file")
    about = "" if job.total_items else "about "
    return f"{output.human_count(job.processed_items)} of {about}{output.plural(total, 'file')}"
