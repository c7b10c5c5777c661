"""Waits until all pictures and videos are processed, with a progress bar on a terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mediaplane import media
from mediaplane.cli import output
from mediaplane.cli.documents import enum_name
from mediaplane.client import Client

# For a data plane that is started for a command: decode nothing.
WITHOUT_MEDIA = {"MEDIAPLANE_IMAGE_SLOTS": "0", "MEDIAPLANE_VIDEO_SLOTS": "0"}

_PAUSE_SECONDS = 0.25
# Waiting work that nobody has taken for so long will not be taken by a worker that is there.
_STUCK_SECONDS = 30.0

# Shows how many are done, and of how many.
Show = Callable[[int, int], None]


class Media(NamedTuple):
    """What became of pictures and videos."""

    processed_assets: int = 0  # while it was waited for them
    failed_assets: int = 0
    waiting_assets: int = 0


def current(client: Client) -> Media:
    """How it stands, without waiting."""
    return _media(media.pipeline(client), 0)


def finish(client: Client, *, is_shown: bool) -> Media:
    """Wait until nothing is left to process, or nobody is there to do it."""
    first = status = media.pipeline(client)
    total = _left(first)
    if not total:
        return _media(first, 0)
    with _bar() if is_shown and output.is_terminal() else _nothing() as show:
        moved_at = time.monotonic()
        while left := _left(status):
            total = max(total, left)  # another command may find more meanwhile
            show(total - left, total)
            if not status.running_assets and _is_stuck(client, moved_at):
                break
            time.sleep(_PAUSE_SECONDS)
            status, before = media.pipeline(client), left
            if status.running_assets or _left(status) != before:
                moved_at = time.monotonic()
    if left:
        output.tell(
            f"{output.plural(left, 'image or video', 'images and videos')} wait, but no worker"
            " processes them: see `mediaplane worker list` and MEDIAPLANE_IMAGE_SLOTS."
        )
    newly_failed = max(0, status.failed_assets - first.failed_assets)
    return _media(status, max(0, total - left - newly_failed))


def _media(status: Any, processed: int) -> Media:
    return Media(processed, status.failed_assets, _left(status))


def _left(status: Any) -> int:
    return int(status.waiting_images + status.waiting_videos + status.running_assets)


def _is_stuck(client: Client, moved_at: float) -> bool:
    if time.monotonic() > moved_at + _STUCK_SECONDS:
        return True
    return not any(
        enum_name(worker, "state") in {"idle", "processing"} and worker.stats["media_slots"]
        for worker in client.workers()
        if "media_slots" in worker.stats
    )


@contextmanager
def _nothing() -> Iterator[Show]:
    yield lambda _done, _total: None


@contextmanager
def _bar() -> Iterator[Show]:
    from rich import progress as bars  # noqa: PLC0415 - only a terminal needs it

    with bars.Progress(
        bars.SpinnerColumn(),
        bars.TextColumn("Making thumbnails and proxies"),
        bars.BarColumn(),
        bars.TextColumn("{task.fields[figures]}", markup=False),
        console=output.console(),
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None, figures="")

        def show(done: int, total: int) -> None:
            speed = progress.tasks[0].speed
            progress.update(task, completed=done, total=total, figures=figures(done, total, speed))

        yield show


def figures(done: int, total: int, speed: float | None) -> str:
    """The numbers beside the bar; `speed` is per second."""
    parts = [f"{output.human_count(done)} of {output.human_count(total)}"]
    if speed:
        parts.append(f"{speed:,.1f}/s")
        parts.append(f"{output.human_seconds(round((total - done) / speed))} left")
    return "  ".join(parts)
