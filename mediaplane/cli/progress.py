"""Follows a job to its end, with a progress bar on a terminal."""

from typing import TYPE_CHECKING, Any

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


def _follow_with_bar(client: "Client", name: str) -> Any:
    from rich import progress as bars  # noqa: PLC0415 - only a terminal needs it

    last = None
    with bars.Progress(
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        _figures_column(),
        console=output.console(),
        transient=True,
    ) as progress:
        task = progress.add_task(f"Waiting for {name}", total=None, job=None)
        for job in client.watch_job(name):
            last = job
            _advance(progress, task, job)
    return last


def _advance(progress: "Progress", task: "TaskID", job: Any) -> None:
    description = output.printable(activity(job))
    state = enum_name(job, "state")
    if state in {"pending", "retryable"}:
        description += f" ({state})"
    if job.total_bytes:
        total, completed = job.total_bytes, job.progress * job.total_bytes
    elif job.total_items:
        total, completed = job.total_items, job.processed_items
    else:
        total, completed = None, job.processed_items
    progress.update(task, description=description, total=total, completed=completed, job=job)


def _figures_column() -> Any:
    from rich.progress import ProgressColumn  # noqa: PLC0415 - only a terminal needs it
    from rich.text import Text  # noqa: PLC0415

    class Figures(ProgressColumn):
        """Done, total, rate and time left, in the job's own unit."""

        def render(self, task: "Task") -> "Text":
            return Text(figures(task.fields["job"], task.completed, task.speed))

    return Figures()


def figures(job: Any, completed: float, speed: float | None) -> str:
    """The numbers beside the bar; `speed` is per second, in bytes when the job counts bytes."""
    if job is None:
        return ""
    files = output.human_count(job.processed_items)
    if not job.total_bytes:
        rate = f"  {output.human_count(speed)}/s" if speed else ""
        if job.total_items:
            return f"{files} of {output.plural(job.total_items, 'file')}{rate}"
        return f"{output.plural(job.processed_items, 'file')}{rate}"
    parts = [
        f"{output.human_bytes(completed)} of {output.human_bytes(job.total_bytes)}",
        f"{files} of {output.plural(job.total_items, 'file')}",
    ]
    if speed:
        left = (job.total_bytes - completed) / speed
        parts += [f"{output.human_bytes(speed)}/s", f"{output.human_seconds(round(left))} left"]
    return "  ".join(parts)
