"""Waits until the pictures and videos of libraries are processed, with a bar on a terminal."""

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

# Counting millions takes the database a while: it shall rest for most of the time.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 1.0
_PAUSE_PER_COUNT = 20
# Waiting work that nobody has taken for so long will not be taken by a worker that is there.
_STUCK_SECONDS = 60.0

# Shows how many are done, and of how many.
Show = Callable[[int, int], None]


class Media(NamedTuple):
    """What is left of pictures and videos."""

    failed_assets: int
    waiting_assets: int


def current(client: Client, slugs: list[str]) -> Media:
    """How it stands with some libraries, without waiting."""
    if not slugs:
        return Media(0, 0)
    found = media.pipeline(client, slugs)
    return Media(found.failed_assets, _left(found))


def finish(client: Client, slugs: list[str], *, is_shown: bool) -> Media:
    """Wait until nothing is left to process in some libraries, or nobody is there to do it."""
    with _bar() if is_shown and output.is_terminal() else _nothing() as show:
        problem = _await_end(client, slugs, show)
    found = current(client, slugs)
    if problem and found.waiting_assets:
        waiting = output.plural(found.waiting_assets, "image or video", "images and videos")
        output.tell(f"{waiting} wait, but {problem}")
    return found


def decodes_media(client: Client) -> bool:
    """Tell whether a worker is there that processes pictures and videos."""
    return any(
        enum_name(worker, "state") in {"idle", "processing"} and worker.stats["media_slots"]
        for worker in client.workers()
        if "media_slots" in worker.stats
    )


def _await_end(client: Client, slugs: list[str], show: Show) -> str:
    """Wait for the end; return why it is not to be waited for, '' when it has come."""
    total, before, pause_seconds = 0, -1, _FIRST_PAUSE_SECONDS
    moved_at = time.monotonic()
    while slugs:
        began_at = time.monotonic()
        found = media.pipeline(client, slugs, omits_failed=True)
        now = time.monotonic()
        left = _left(found)
        if not left:
            break
        total = max(total, left)  # another command may find more meanwhile
        show(total - left, total)
        if found.running_assets or left != before:
            moved_at, before = now, left
        if not found.running_assets and not decodes_media(client):
            return (
                "no worker processes them: see `mediaplane worker list` and MEDIAPLANE_IMAGE_SLOTS."
            )
        if now > moved_at + _STUCK_SECONDS:
            # Those of other libraries may have their turn.
            if not media.pipeline(client, omits_failed=True).running_assets:
                waiting = ", ".join(
                    slug for slug in slugs if current(client, [slug]).waiting_assets
                )
                return f"none was taken for {_STUCK_SECONDS:g} s: is the disk of {waiting} mounted?"
            moved_at = now
        pause_seconds = next_pause(pause_seconds, count_seconds=now - began_at)
        time.sleep(pause_seconds)
    return ""


def next_pause(last_seconds: float, *, count_seconds: float) -> float:
    """How long to wait after a count that took so long."""
    return max(min(1.5 * last_seconds, _LONGEST_PAUSE_SECONDS), _PAUSE_PER_COUNT * count_seconds)


def _left(status: Any) -> int:
    return int(status.waiting_images + status.waiting_videos + status.running_assets)


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
