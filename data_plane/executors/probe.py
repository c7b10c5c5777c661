"""Exercises the way of a job: takes its time, writes a scratch file, and leaves nothing behind."""

from typing import BinaryIO

from data_plane.executor import Context, Control, ProbeTask

_BLOCK = bytes(1 << 20)


def probe(task: ProbeTask, ctx: Context) -> None:
    """Take as long and as much space as asked."""
    if task.scratch_bytes:
        with ctx.scratch_file() as file:
            _fill(file, task.scratch_bytes, ctx.control)
            ctx.control.wait(task.seconds)
    else:
        ctx.control.wait(task.seconds)
    ctx.control.items = task.items


def _fill(file: BinaryIO, size_bytes: int, control: Control) -> None:
    while control.bytes < size_bytes:
        control.check()
        control.bytes += file.write(_BLOCK[: size_bytes - control.bytes])
    file.flush()
