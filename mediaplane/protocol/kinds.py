"""The kinds of job that can run and the typed payload of each."""

from dataclasses import asdict, dataclass
from typing import Any

from mediaplane.protocol.values import JobKind


@dataclass(frozen=True)
class ScanPayload:
    """Walk one library and report what changed."""

    library: str
    # The operator says that another or an empty root is meant.
    accept_new_root: bool = False


@dataclass(frozen=True)
class HashPayload:
    """Hash what the control plane marked; the files stand in the job's items."""

    library: str | None = None  # of all libraries, if of none


# More than any file has.
ANY_BYTES = 2**63 - 1


@dataclass(frozen=True)
class HashItemPayload:
    """One shard of a hash or verify job: its files with ids and sizes in these ranges.

    Both ends are included. Small files are cut by their ids, large ones by their sizes.
    """

    first_file_id: int
    last_file_id: int
    smallest_bytes: int = 0
    largest_bytes: int = ANY_BYTES
    # Only the beginnings, of files that are large enough for it to save something.
    is_prefix: bool = False


# How the keys of such items begin.
PREFIX_ITEM = "prefix-"
# Of a file up to this size all is read in about the time that opening it takes.
SMALL_BYTES = 256 << 10
IS_LARGE = f"{{file}}.size_bytes > {SMALL_BYTES}"
# The condition that the beginning of a file, which is marked to be hashed, is to be read first.
IS_STAGED = (
    f"{IS_LARGE} AND {{file}}.prefix_hash IS NULL AND {{library}}.hash_policy = 'candidates'"
)


# The condition that a job may be claimed: the control plane gives some their items before.
IS_PLANNED = "(kind NOT IN ('hash', 'verify') OR total_items IS NOT NULL)"


@dataclass(frozen=True)
class VerifyPayload:
    """Compare the hashed files of one library with their hashes; they stand in the job's items."""

    library: str


@dataclass(frozen=True)
class ProbePayload:
    """Do nothing of use, for a while: an exercise of the way from admission to the end."""

    seconds: float = 0.0
    scratch_bytes: int = 0


@dataclass(frozen=True)
class SweepPayload:
    """Remove derivatives whose row is gone; the cache is that of the worker."""


@dataclass(frozen=True)
class Kind:
    """A kind of job: its payload, and for a kind that can be cut into items, theirs."""

    payload: type[Any]
    item_payload: type[Any] | None = None
    # Most jobs that a worker takes at once, when they turn out to be tiny.
    batch: int = 1


# A kind of `JobKind` that is not here is a legal value that nothing can run yet.
KINDS: dict[JobKind, Kind] = {
    JobKind.SCAN: Kind(ScanPayload),
    JobKind.HASH: Kind(HashPayload, HashItemPayload),
    JobKind.VERIFY: Kind(VerifyPayload, HashItemPayload),
    JobKind.PROBE: Kind(ProbePayload, ProbePayload, batch=500),
    JobKind.SWEEP: Kind(SweepPayload),
}


def encode(payload: Any) -> dict[str, Any]:
    """Return the payload as stored in a JSON column."""
    return asdict(payload)


def decode(kind: JobKind, stored: dict[str, Any]) -> Any:
    """Return the typed payload of a job row; unknown keys are an error."""
    return KINDS[kind].payload(**stored)


def decode_item(kind: JobKind, stored: dict[str, Any]) -> Any:
    """Return the typed payload of a job item row."""
    item_payload = KINDS[kind].item_payload
    if item_payload is None:
        raise TypeError(f"jobs of kind {kind} have no items")
    return item_payload(**stored)
