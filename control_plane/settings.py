"""The settings of the control plane."""

from dataclasses import dataclass

from mediaplane.protocol.database import WAL_LIMIT_BYTES
from mediaplane.settings import setting
from mediaplane.transport import TransportSettings


@dataclass(frozen=True)
class ControlSettings(TransportSettings):
    """What an operator may tune; docs/OPERATIONS.md lists it."""

    control_calls: int = setting(16, "Calls answered at the same time.", minimum=1)
    control_watchers: int = setting(128, "Watch streams held open at the same time.", minimum=1)
    control_metrics_address: str = setting(
        "", "Address (host:port) at which this plane serves metrics; none when empty."
    )
    metrics_beyond_loopback: bool = setting(
        False, "Let metrics be served at an address that other machines reach."
    )
    control_health_address: str = setting(
        "", "Address (host:port) that answers the probes of an orchestrator; none when empty."
    )
    feed_seconds: float = setting(
        0.25, "Seconds between two looks for events that nobody rang for.", minimum=0.01
    )
    recovery_seconds: float = setting(
        2.0,
        "Seconds between two looks for expired leases, due retries and work left undone.",
        minimum=0.05,
    )
    absorb_seconds: float = setting(
        0.05, "Seconds between two looks for reports of a running scan.", minimum=0.01
    )
    schedule_seconds: float = setting(
        1.0, "Seconds between two looks for schedules that are due.", minimum=0.05
    )
    retention_days: float = setting(
        30.0,
        "Days for which jobs that have ended and their events are kept; 0 is for ever.",
        minimum=0,
    )
    audit_days: float = setting(
        365.0, "Days for which the audit log is kept; 0 is for ever.", minimum=0
    )
    remote_token_days: float = setting(
        366.0, "Most days that a token made from another machine may work for.", minimum=0.01
    )
    thumbnail_capacity: int = setting(
        10_000, "Most requested thumbnails that may wait for a worker.", minimum=1
    )
    wal_limit_bytes: int = setting(
        WAL_LIMIT_BYTES,
        "Bytes that SQLite's log is kept below; from half of them bulk work waits.",
        minimum=32 << 20,
    )
    checkpoint_interval_seconds: float = setting(
        5.0, "Least seconds from the end of a checkpoint of SQLite's log to the next.", minimum=0
    )
    retry_base_seconds: float = setting(1.0, "Seconds before the first retry.", minimum=0)
    retry_max_seconds: float = setting(30.0, "Most seconds before any retry.", minimum=0)
    retry_jitter: float = setting(0.2, "Share by which a delay varies at random.", minimum=0)
    stop_grace_seconds: float = setting(
        5.0, "Seconds that calls under way get to finish when stopping.", minimum=0
    )
    exit_on_stdin_eof: bool = setting(False, "Stop when standard input ends (for starters).")
