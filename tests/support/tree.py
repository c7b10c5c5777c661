"""A folder as people have them: nested, linked, with hostile names; and what is duplicate in it."""

import hashlib
import os
import random
import subprocess
from collections import defaultdict
from pathlib import Path

HOSTILE_NAMES = (
    b"caf\xe9.jpg",
    b"\xff\xfe.png",
    b"new\nline.jpg",
    b"tab\there.mp4",
    b"\r\x1b[31mred.jpg",
    b"-rf.jpg",
    b"$(touch pwn);`id`|&.jpg",
    b'it\'s "q".jpg',
    "cafe\u0301.jpg".encode(),
    "caf\u00e9.jpg".encode(),
    "exe\u202egpj.png".encode(),
    b"x.jpg[shrink=8,page=-1]",
    b"img%03d.jpg",
    b"x');DROP TABLE jobs;--.jpg",
    b"TWIN.JPG",
    b"twin.jpg",
    b"z" * 255,
    b" leading and trailing ",
    b".hidden",
)

Groups = set[frozenset[tuple[int, int]]]


def generate(root: Path, files: int, *, unreadable: bool = True, seed: int = 7) -> None:
    """Make a tree with at least this many files, the same for the same seed."""
    rng = random.Random(seed)
    base = os.fsencode(root)
    contents = [
        rng.randbytes(rng.choice((1, 7, 100, 4096, 16384, 40000))) for _ in range(files // 8)
    ]
    folders = [base] + [
        os.path.join(base, *(b"d%d" % rng.randrange(7) for _ in range(rng.randrange(1, 6))))
        for _ in range(files // 40)
    ]
    folders.append(os.path.join(base, b"bad\xffdir", b"new\nline"))
    made: list[bytes] = []
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    for number in range(files):
        name = b"%05d-" % number + rng.choice(HOSTILE_NAMES)
        path = os.path.join(rng.choice(folders), name[:255])
        kind = rng.random()
        if kind < 0.04 and made:
            os.link(rng.choice(made), path)
        elif kind < 0.06 and made:
            os.symlink(rng.choice(made), path)
            continue
        else:
            # Some equal, some of equal size but different in the last byte, some empty.
            data = rng.choice(contents) if kind < 0.5 else rng.randbytes(rng.randrange(1, 3000))
            if 0.06 < kind < 0.09:
                data = b""
            elif 0.09 < kind < 0.14:
                data = data[:-1] + bytes([rng.randrange(256)])
            _write(path, data)
            made.append(path)
    _oddities(base, made, unreadable=unreadable)


def _oddities(base: bytes, made: list[bytes], *, unreadable: bool) -> None:
    for name in HOSTILE_NAMES:
        _write(os.path.join(base, name), b"the same content under every hostile name")
    _write(os.path.join(base, b"triple"), b"one file with three names")
    os.link(os.path.join(base, b"triple"), os.path.join(base, b"triple-2"))
    os.link(os.path.join(base, b"triple"), os.path.join(base, b"triple-3"))
    _write(os.path.join(base, b"triple-copy"), b"one file with three names")
    os.symlink(base, os.path.join(base, b"loop"))
    os.symlink(b"/etc", os.path.join(base, b"outside"))
    os.symlink(b"nowhere", os.path.join(base, b"dangling"))
    os.mkfifo(os.path.join(base, b"fifo"))
    if unreadable:
        for path in made[:5]:
            os.chmod(path, 0)
        closed = os.path.join(base, b"closed folder")
        os.mkdir(closed)
        _write(os.path.join(closed, b"inside.jpg"), b"nobody sees this")
        os.chmod(closed, 0)


def _write(path: bytes, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def brute_force(root: Path) -> Groups:
    """Return the groups of inodes with equal content, by reading every file; empty ones aside."""
    by_content: dict[bytes, set[tuple[int, int]]] = defaultdict(set)
    for folder, _, names in os.walk(os.fsencode(root)):
        for name in names:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            if not os.path.isfile(path) or os.path.islink(path) or info.st_size == 0:
                continue
            if info.st_mode & 0o400 == 0:
                continue  # unreadable, whoever runs this test
            with open(path, "rb") as file:
                digest = hashlib.sha512(file.read()).digest()
            by_content[digest].add((info.st_dev, info.st_ino))
    return {frozenset(inodes) for inodes in by_content.values() if len(inodes) > 1}


def jdupes(root: Path) -> Groups:
    """Return the groups of inodes that jdupes finds."""
    output = subprocess.run(
        [*unprivileged(), "jdupes", "-r", "-Q", "-q", "-0", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    ).stdout
    groups = set()
    for group in output.split(b"\0\0"):
        inodes = {inode(path) for path in group.split(b"\0") if path}
        if len(inodes) > 1:
            groups.add(frozenset(inodes))
    return groups


def inode(path: bytes) -> tuple[int, int]:
    """Return what identifies the file behind a name."""
    info = os.lstat(path)
    return info.st_dev, info.st_ino


def snapshot(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Return everything about a tree that a reader must not change."""
    seen: dict[bytes, tuple[object, ...]] = {}
    for folder, folders, names in os.walk(os.fsencode(root)):
        for name in [*folders, *names, b"."]:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            attributes = tuple(
                (key, os.getxattr(path, key, follow_symlinks=False))
                for key in sorted(os.listxattr(path, follow_symlinks=False))
            )
            content: object = None
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).digest()
            seen[path] = (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns,
                          info.st_nlink, info.st_ino, attributes, content)  # fmt: skip
    return seen


def unprivileged() -> list[str]:
    """Return what to run a program with so that file permissions hold, also for root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
