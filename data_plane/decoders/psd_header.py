"""Tells of a Photoshop file by its header why it is not decoded, though nothing of it is broken."""

import struct

_LARGE = 2
_DEEP_BITS = (16, 32)


def why_not_decoded(content: bytes) -> str | None:
    """Return a sentence on what a PSD file is, if that is a kind which is not decoded."""
    try:
        version, bits = struct.unpack_from(">4xH16xH", content)
    except struct.error:
        return None
    if version == _LARGE:
        return "It is a large Photoshop file (PSB), which is not decoded: save it as PSD or TIFF."
    if bits in _DEEP_BITS:
        return (
            f"It is a Photoshop file of {bits} bits a channel, and of these only files of 8 bits"
            " are decoded: save it with 8 bits, or as TIFF."
        )
    return None
