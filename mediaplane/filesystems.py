"""Tells on what kind of file system a path lies."""

import os
from pathlib import Path

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre",
     "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"}
)  # fmt: skip


def filesystem_type(path: Path) -> str:
    """Return the type of the file system that holds a path, or '' where it cannot be told."""
    number = path.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in mounts:
        before, _, after = line.partition(" - ")
        if before.split()[2] == device:
            return after.split()[0]
    return ""


def network_filesystem(path: Path) -> str | None:
    """Return the type of a network file system that holds a path, None where it is local."""
    existing = next((p for p in (path, *path.absolute().parents) if p.exists()), None)
    kind = filesystem_type(existing) if existing else ""
    return kind if kind in _NETWORK else None
