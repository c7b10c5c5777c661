"""Files that lose something as on a failing disk."""

import os
from pathlib import Path


def flip(path: Path) -> None:
    """Change one byte as a failing disk does: size and mtime stay."""
    info = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (info.st_size, info.st_mtime_ns)
