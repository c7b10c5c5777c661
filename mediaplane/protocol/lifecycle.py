"""The vocabulary of machines.py: steps, lease effects and write paths."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from sqlalchemy import Table

from mediaplane.protocol.values import EventType, Plane

OWNER = frozenset({"worker_id", "worker_heartbeat_at", "lease_expires_at"})

# Why recovery put a row back: the same words wherever it happens.
LEASE_EXPIRED = "lease_expired"
LEASE_EXPIRED_MESSAGE = "The worker stopped renewing its lease; the work is put back."


class Lease(StrEnum):
    """What a step does to the lease of its row."""

    ABSENT = "absent"  # the lease, if there is one, is left alone
    TAKE = "take"  # a worker becomes the owner; the epoch rises
    KEEP = "keep"  # the owner extends its lease
    DROP = "drop"  # the owner ends its lease
    REAP = "reap"  # an expired lease is taken away from its owner
    REVOKE = "revoke"  # a lease, if there is one, ends because the job of its row has ended


@dataclass(frozen=True)
class WritePath:
    """One way in which the data plane may write one table: its whitelist."""

    table: str
    name: str
    updates: frozenset[str] = frozenset()
    inserts: frozenset[str] = frozenset()
    deletes: bool = False

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


@dataclass(frozen=True, eq=False)  # each is itself: they key the cache of statements
class Step:
    """One legal move of a row: who takes it, from where to where, and what it may write."""

    name: str
    plane: Plane
    sources: tuple[str, ...]
    target: str | None  # None: the status stays as it is
    lease: Lease
    path: WritePath  # the columns of its whitelist; the data plane can write no other
    due: str | None = None  # a column: the step is legal once that time is reached
    when: str | None = None  # one more SQL condition on the row
    increments: tuple[str, ...] = ()  # columns that rise by one
    sets: Mapping[str, object] = field(default_factory=dict)  # columns with a fixed value
    events: tuple[EventType, ...] = ()  # what the move appends to the job's history
    says: str = ""  # the message of a LOG among the events
    counts: tuple[str, ...] = ()  # columns of the row's job that rise by what the row weighs

    @property
    def writes(self) -> frozenset[str]:
        """The columns the step may write."""
        return self.path.updates


@dataclass(frozen=True, eq=False)
class Machine:
    """A table whose rows live by steps."""

    table: Table
    statuses: type[StrEnum]
    claim_order: str
    steps: tuple[Step, ...]
    # What a worker is given of a row that it claims; nothing named: all columns.
    handed_out: tuple[str, ...] = ()
    # The column, of a closed set of values, that says of which kind the work of a row is.
    kind_column: str | None = None

    @property
    def name(self) -> str:
        """The name of the table, which is the name of the machine."""
        return self.table.name

    def step(self, name: str) -> Step:
        """Return a step by its name."""
        for step in self.steps:
            if step.name == name:
                return step
        raise LookupError(f"{self.name} has no step {name!r}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of work that its rows can be; the empty one where there is no difference."""
        if self.kind_column is None:
            return ("",)
        return tuple(self.table.columns[self.kind_column].info["legal"])

    @cached_property
    def ranking(self) -> list[tuple[str, bool]]:
        """The columns of the claim order, each with whether the highest comes first."""
        parts = (part.split() for part in self.claim_order.split(","))
        return [(words[0], words[-1] == "DESC") for words in parts]

    @cached_property
    def final(self) -> tuple[str, ...]:
        """The statuses that no step leaves."""
        left = {source for step in self.steps if step.target for source in step.sources}
        return tuple(status for status in self.statuses if status not in left)
