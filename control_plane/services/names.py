"""Resource names to keys."""

import re

from mediaplane.errors import InvalidArgument
from mediaplane.paths import display
from mediaplane.protocol.values import HashAlgorithm

ALL_LIBRARIES = "libraries/-"
ALL_JOBS = "jobs/-"

_SLUG = r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)"
_ID = r"([1-9][0-9]{0,17})"
_JOB = re.compile(rf"jobs/{_ID}")
_LIBRARY = re.compile(rf"libraries/{_SLUG}")
_FILE = re.compile(rf"libraries/{_SLUG}/files/{_ID}")
_ASSET = re.compile(rf"libraries/{_SLUG}/assets/{_ID}")
_THUMBNAIL = re.compile(rf"thumbnails/{_ID}")
_SCHEDULE = re.compile(rf"schedules/{_SLUG}")
_TOKEN = re.compile(rf"tokens/{_ID}")
_CHECKPOINT = re.compile(rf"checkpoints/{_ID}")
_CLEANUP = re.compile(rf"thumbnailCleanups/{_ID}")
# Whatever a worker may be called; a slash would be another resource, and no database stores NUL.
_WORKER = re.compile(r"workers/([^/\0]{1,128})")
# Both algorithms have digests of 32 bytes.
_GROUP = re.compile(r"(blake3|sha256):([0-9a-f]{64})")


def job_id(name: str) -> int:
    """Return the id in jobs/{id}."""
    return int(_match(_JOB, name, "jobs/123")[1])


def library_slug(name: str) -> str:
    """Return the slug in libraries/{slug}."""
    return _match(_LIBRARY, name, "libraries/holiday-photos")[1]


def file(name: str) -> tuple[str, int]:
    """Return slug and id in libraries/{slug}/files/{id}."""
    slug, file_id = _match(_FILE, name, "libraries/holiday-photos/files/123").groups()
    return slug, int(file_id)


def file_name(slug: str, file_id: int) -> str:
    """Return the name of a file."""
    return f"libraries/{slug}/files/{file_id}"


def asset(name: str) -> tuple[str, int]:
    """Return slug and id in libraries/{slug}/assets/{id}."""
    found = _match(_ASSET, name, "libraries/holiday-photos/assets/123")
    return found[1], int(found[2])


def thumbnail_id(name: str) -> int:
    """Return the id in thumbnails/{id}."""
    return int(_match(_THUMBNAIL, name, "thumbnails/123")[1])


def cleanup_id(name: str) -> int:
    """Return the id in thumbnailCleanups/{id}."""
    return int(_match(_CLEANUP, name, "thumbnailCleanups/123")[1])


def schedule(name: str) -> str:
    """Return the id in schedules/{schedule}."""
    return _match(_SCHEDULE, name, "schedules/nightly-rescan")[1]


def token_id(name: str) -> int:
    """Return the number in tokens/{number}."""
    return int(_match(_TOKEN, name, "tokens/123")[1])


def checkpoint_id(name: str) -> int:
    """Return the id in checkpoints/{id}."""
    return int(_match(_CHECKPOINT, name, "checkpoints/123")[1])


def worker_id(name: str) -> str:
    """Return the id in workers/{id}."""
    return _match(_WORKER, name, "workers/myhost-3f2a9c0d1e2b")[1]


def group(name: str) -> tuple[HashAlgorithm, bytes]:
    """Return algorithm and digest in duplicateGroups/{group_key}."""
    return group_parts(name.removeprefix("duplicateGroups/"))


def group_parts(key: str) -> tuple[HashAlgorithm, bytes]:
    """Return algorithm and digest in {algorithm}:{digest in hex}."""
    found = _match(_GROUP, key, "blake3:<64 hex digits> or sha256:<64 hex digits>")
    return HashAlgorithm(found[1]), bytes.fromhex(found[2])


def group_key(algorithm: str, content_hash: bytes) -> str:
    """Return the key of a duplicate group."""
    return f"{algorithm}:{content_hash.hex()}"


def _match(pattern: re.Pattern[str], name: str, example: str) -> re.Match[str]:
    found = pattern.fullmatch(name)
    if found is None:
        raise InvalidArgument(
            f"{display(name[:200].encode('utf-8', 'surrogatepass'))!r} is not a name of the form"
            f" {example}."
        )
    return found
