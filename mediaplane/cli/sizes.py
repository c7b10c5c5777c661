"""Reads sizes as people write them: 500, 4k, 1M, 2GiB."""

import re

import typer

# The letters mean what the program itself prints: powers of 1024. MB is refused, because half of
# the world reads it as a power of 1000.
_SIZE = re.compile(r"([0-9]{1,19}) ?(?:B|([KMGTP])(?:iB)?)?", re.ASCII | re.IGNORECASE)
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_MAX_BYTES = 2**63 - 1


def parse_size(text: str) -> int:
    """Return the bytes in a size, or raise the usual usage error."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is not a size; write a whole number of bytes, or one with k, M, G, T or P"
            " for powers of 1024, such as 500, 4k or 2GiB."
        )
    size_bytes = int(found[1]) << _SHIFTS[(found[2] or "").upper()]
    if size_bytes > _MAX_BYTES:
        raise typer.BadParameter(f"{text!r} is larger than any file can be; give a smaller size.")
    return size_bytes
