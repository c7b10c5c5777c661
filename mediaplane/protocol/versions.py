"""The mark of one state of a file, by which both planes tell what was made of which."""


def version_of(size_bytes: int, mtime_ns: int) -> str:
    """Return the mark of a file of this size, last modified at this time."""
    return f"{size_bytes:x}-{mtime_ns:x}"
