"""The files that an order fills: scratch files, moved into the cache once they are whole."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from data_plane.executor import Context


@contextmanager
def scratch_outputs(ctx: Context, count: int) -> Iterator[list[BinaryIO]]:
    """Yield new files for the outputs of an order; those not published are gone afterwards."""
    with ExitStack() as stack:
        yield [stack.enter_context(ctx.scratch_file()) for _ in range(count)]


def publish(file: BinaryIO, ctx: Context, path: str) -> None:
    """Give a whole file its place in the state directory, at once and over an older one there.

    It is not forced to the disk: what a power cut takes can be made again.
    """
    target = os.path.join(os.fsdecode(ctx.state), path)
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    # Its first name goes with the block that made it. The second one is moved; should the worker
    # die before that, it is swept with the scratch folder.
    whole = f"{file.name}.whole"
    os.link(file.name, whole)
    try:
        os.replace(whole, target)
    except OSError:
        os.unlink(whole)
        raise
