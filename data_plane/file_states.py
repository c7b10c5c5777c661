"""What the system says of a file, in the terms of the database."""

import os

_MAX_TIME_NS = 2**63 - 1


def signed64(number: int) -> int:
    """Return a 64-bit device or inode number as databases store it."""
    return number - (1 << 64) if number >= 1 << 63 else number


def storable_time(time_ns: int) -> int:
    """Return a time as databases store it; one beyond that is legal on some file systems."""
    return max(-_MAX_TIME_NS, min(time_ns, _MAX_TIME_NS))


def state_of(info: os.stat_result) -> tuple[int, int]:
    """Return size and time of change, by which a file is known to be as it was."""
    return info.st_size, storable_time(info.st_mtime_ns)


def explain(error: OSError) -> tuple[str, str]:
    """Return a stable code and a sentence for an error of the file system."""
    reason = getattr(error, "reason", None)
    if reason is not None:
        return f"refused_{reason}", f"Not opened: {error.strerror}."
    match error:
        case PermissionError():
            return "permission_denied", "The worker may not read it; check its permissions."
        case FileNotFoundError():
            return "not_found", "It is not there any more; scan the library again."
        case NotADirectoryError() | IsADirectoryError():
            return "changed", "It is another thing than it was; scan the library again."
        case _:
            return "io_error", f"The file system reports: {error.strerror or error}."
