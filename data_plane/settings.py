"""The settings of the data plane."""

import os
from dataclasses import dataclass

from mediaplane.protocol.database import WAL_LIMIT_BYTES
from mediaplane.settings import setting
from mediaplane.transport import TransportSettings


@dataclass(frozen=True)
class DataSettings(TransportSettings):
    """What an operator may tune; docs/OPERATIONS.md lists it."""

    # One more than can be busy: of those that hash, one mostly writes or waits for the database.
    slots: int = setting(
        max(2, os.cpu_count() or 1) + 1, "Pieces of work done at the same time.", minimum=1
    )
    priority_slots: int = setting(
        1, "More pieces of work at the same time, for urgent jobs alone.", minimum=0
    )
    priority_threshold: int = setting(90, "Priority from which a job is urgent.")
    lease_seconds: float = setting(
        60.0, "Seconds after which work of a silent worker is given to another.", minimum=1
    )
    poll_seconds: float = setting(
        0.5, "Most seconds between two looks for work; new work is also announced.", minimum=0.01
    )
    progress_seconds: float = setting(
        0.5, "Seconds between two progress reports and looks for cancellation.", minimum=0.05
    )
    hash_bytes_per_second: float = setting(
        0.0,
        "Bytes that all workers together may read a second to hash them; 0: no limit.",
        minimum=0,
    )
    image_slots: int = setting(
        max(1, os.cpu_count() or 1), "Images decoded at the same time; 0: none.", minimum=0
    )
    video_slots: int = setting(1, "Videos decoded at the same time; 0: none.", minimum=0)
    image_deadline_seconds: float = setting(
        60.0, "Seconds after which the decoder of an image is killed.", minimum=1
    )
    video_deadline_seconds: float = setting(
        1800.0, "Seconds after which the decoder of a video is killed.", minimum=1
    )
    decoder_memory_bytes: int = setting(
        2 << 30, "Bytes of memory that one decoder may take.", minimum=256 << 20
    )
    max_pixels: int = setting(
        1 << 28, "Pixels beyond which a picture or a video is not decoded.", minimum=1
    )
    max_video_seconds: float = setting(
        24 * 3600.0, "Seconds beyond which a video is not decoded.", minimum=1
    )
    allow_svg: bool = setting(False, "Draw SVG files, which are programs of a sort.")
    thumbnail_bytes_per_second: float = setting(
        0.0,
        "Bytes that all workers together may read a second to decode them; 0: no limit.",
        minimum=0,
    )
    wal_limit_bytes: int = setting(
        WAL_LIMIT_BYTES,
        "Bytes that SQLite's log is kept below; from half of them bulk work waits.",
        minimum=32 << 20,
    )
    data_metrics_address: str = setting(
        "", "Address (host:port) at which this plane serves metrics; none when empty."
    )
    metrics_beyond_loopback: bool = setting(
        False, "Let metrics be served at an address that other machines reach."
    )
    worker_name: str = setting("", "Name of this worker; the host's name when empty.")
    roots: str = setting(
        "", "Folders, separated by ':', that libraries must lie in; any folder when empty."
    )
    data_calls: int = setting(16, "Calls answered at the same time.", minimum=1)
    data_streams: int = setting(32, "Content streams held open at the same time.", minimum=1)
    data_health_address: str = setting(
        "", "Address (host:port) that answers the probes of an orchestrator; none when empty."
    )
    stop_grace_seconds: float = setting(
        5.0, "Seconds to stop in: half to finish work in hand, half to put it back.", minimum=0
    )
    exit_on_stdin_eof: bool = setting(False, "Stop when standard input ends (for starters).")
