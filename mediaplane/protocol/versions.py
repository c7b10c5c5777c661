"""The mark of one state of a file, by which both planes tell what was made of which."""

_SIGN = "CASE WHEN f.mtime_ns < 0 THEN '-' ELSE '' END"
# The mark of the file `f`, so that a query can look for what was made of it.
VERSION_SQL = {
    "sqlite": f"printf('%x-%s%x', f.size_bytes, {_SIGN}, abs(f.mtime_ns))",
    "postgresql": f"to_hex(f.size_bytes) || '-' || {_SIGN} || to_hex(abs(f.mtime_ns))",
}


def version_of(size_bytes: int, mtime_ns: int) -> str:
    """Return the mark of a file of this size, last modified at this time."""
    return f"{size_bytes:x}-{mtime_ns:x}"
