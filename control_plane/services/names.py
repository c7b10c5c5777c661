"""Resource names to keys."""

import re

from mediaplane.errors import InvalidArgument
from mediaplane.paths import display
from mediaplane.protocol.values import HashAlgorithm

ALL_LIBRARIES = "libraries/-"
ALL_JOBS = "jobs/-"

_JOB = re.compile(r"jobs/([1-9][0-9]{0,17})")
_LIBRARY = re.compile(r"libraries/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)")
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
