"""Compares the clock of this machine with another one."""

from mediaplane.doctor.finding import Finding, ok, warning

_TOLERATED_SECONDS = 2.0


def compare(whose: str, shown_at: float, asked_at: float, answered_at: float) -> Finding:
    """Say how far apart two clocks are; the other one was read between asking and the answer."""
    check = "clock"
    apart_seconds = max(asked_at - shown_at, shown_at - answered_at, 0.0)
    if apart_seconds <= _TOLERATED_SECONDS:
        return ok(check, f"The {whose} and this machine have the same time.")
    return warning(
        check,
        f"The clock of the {whose} is {apart_seconds:.0f} s"
        f" {'behind' if shown_at < asked_at else 'ahead of'} this machine's.",
        "Leases hold all the same, since one clock decides them; have both set by NTP, or times"
        " in listings and logs will not fit together.",
    )
