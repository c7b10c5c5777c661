"""Names for the states of a file: what is made of one state is never shown for another."""


def file_version(size_bytes: int, mtime_ns: int) -> str:
    """Return the name of a state; it fits into file names and ETags."""
    return f"{size_bytes:x}-{mtime_ns:x}"
