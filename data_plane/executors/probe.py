"""Exercises the way of a job: takes its time, writes a scratch file, and leaves nothing behind."""

from data_plane.executor import Context, ProbeTask

_BLOCK = bytes(1 << 20)


def probe(task: ProbeTask, ctx: Context) -> None:
    """Take as long and as much space as asked."""
    if not task.scratch_bytes:
        ctx.control.wait(task.seconds)
        return
    with ctx.scratch_file() as file:
        written = 0
        while written < task.scratch_bytes:
            ctx.control.check()
            written += file.write(_BLOCK[: task.scratch_bytes - written])
            ctx.control.bytes = written
        file.flush()
        ctx.control.wait(task.seconds)
