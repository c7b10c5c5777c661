"""Counts the steps that rows take in this process, each once its transaction has committed."""

import collections
from collections.abc import Sequence

from sqlalchemy import Connection

from mediaplane.counters import Counter
from mediaplane.protocol.database import count
from mediaplane.protocol.driver import Row
from mediaplane.protocol.lifecycle import Lease, Machine, Step
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.values import Plane

# Where a row is left for good, or until somebody asks: its work is not done again by itself.
_GIVEN_UP = ("failed", "poisoned")


class Tally:
    """What the steps of one plane have come to."""

    def __init__(self, plane: Plane) -> None:
        steps = [(machine, step) for machine in MACHINES for step in machine.steps]
        own = [(machine, step) for machine, step in steps if step.plane is plane]
        names = sorted({(machine.name,) for machine, _step in own})
        self.steps = Counter(
            "mediaplane_steps_total",
            "Rows that this process moved to another status, by the step that they took.",
            ("machine", "kind", "step"),
            [
                (machine.name, kind, step.name)
                for machine, step in own
                if step.target
                for kind in machine.kinds
            ],
        )
        self.expiries = Counter(
            "mediaplane_lease_expiries_total",
            "Leases found expired and taken away from a silent worker.",
            ("machine",),
            names,
        )
        self.recoveries = Counter(
            "mediaplane_recoveries_total",
            "Rows put back to be done again after their lease had expired.",
            ("machine",),
            names,
        )
        self.stale_writes = Counter(
            "mediaplane_stale_writes_rejected_total",
            "Writes that were refused because the worker had lost the lease.",
            ("machine",),
            names,
        )
        self.counters = [self.steps, self.expiries, self.recoveries]
        if plane is Plane.DATA:  # the other one holds no leases
            self.counters.append(self.stale_writes)


TALLIES = {plane: Tally(plane) for plane in Plane}


def note(conn: Connection, machine: Machine, step: Step, rows: Sequence[Row]) -> None:
    """Have rows counted that have taken a step."""
    if not rows or step.target is None:
        return
    tally = TALLIES[step.plane]
    column = machine.kind_column
    kinds = collections.Counter(row[column] for row in rows) if column else {"": len(rows)}
    for kind, moved in kinds.items():
        count(conn, tally.steps, machine.name, kind, step.name, amount=moved)
    if step.lease is Lease.REAP:
        count(conn, tally.expiries, machine.name, amount=len(rows))
        if step.target not in _GIVEN_UP:
            count(conn, tally.recoveries, machine.name, amount=len(rows))


def note_stale(conn: Connection, machine: Machine, refused: int) -> None:
    """Have writes counted that came from a worker which had lost the lease."""
    if refused:
        count(conn, TALLIES[Plane.DATA].stale_writes, machine.name, amount=refused)
