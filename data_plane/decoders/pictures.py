"""Makes thumbnails and proxies of pictures of every format, all of one source from one decode."""

import os
from collections.abc import Sequence

from data_plane.decoders import jxl_loader, pillow_loader, raw_loader, vips_loader
from data_plane.decoders.encoding import write_picture
from data_plane.decoders.lengths import fill_up, length_of
from data_plane.decoders.loaded import Loaded, Undecodable
from data_plane.decoders.messages import EMPTY, DecodeFailed, Done, Failure, Limits, Order
from data_plane.decoders.psd_header import why_not_decoded
from data_plane.decoders.sniff import Format, sniff
from data_plane.digests import HASHERS, read_at

_MAX_REASON_CHARACTERS = 200

# Who tries to load a picture, one after the other, and whether a part of it is enough for that:
# the whole of it by anybody is better than a part.
_BY_VIPS = ((vips_loader.load, False),)
_BY_PILLOW = ((pillow_loader.load, False), (pillow_loader.load, True))
_BY_BOTH = (*_BY_VIPS, (pillow_loader.load, False), (vips_loader.load, True), _BY_PILLOW[1])
# libvips fills the missing rows of a PNG with whatever its memory held, another picture maybe.
_BY_VIPS_IF_WHOLE = (*_BY_VIPS, *_BY_PILLOW)
_BY_ALL = ((raw_loader.load, False), *_BY_BOTH)
_ATTEMPTS = dict.fromkeys(Format, _BY_PILLOW) | {
    Format.JPEG: _BY_BOTH,
    Format.PNG: _BY_VIPS_IF_WHOLE,
    Format.WEBP: _BY_BOTH,
    Format.GIF: _BY_BOTH,
    Format.TIFF: _BY_BOTH,
    Format.AVIF: _BY_BOTH,
    Format.SVG: _BY_VIPS,
    Format.JXL: (_BY_PILLOW[0], (jxl_loader.load, True)),
    Format.RAW: _BY_ALL,
}


def make(order: Order, source_fd: int, output_fds: Sequence[int]) -> Done:
    """Make every output of an order; the source is read once, and decoded once if it is whole."""
    content, digest = _read(source_fd, order)
    found = _supported(content, order)
    size_px = max(output.size_px for output in order.outputs)
    loaded, is_degraded = _load(content, found, size_px, order.limits)
    made = [
        write_picture(loaded.image, output, fd)
        for output, fd in zip(order.outputs, output_fds, strict=True)
    ]
    return Done(
        loaded.width,
        loaded.height,
        made,
        is_degraded=is_degraded,
        digest=digest,
        bytes_read=len(content),
    )


def _read(source_fd: int, order: Order) -> tuple[bytes, bytes | None]:
    """Return the content of a source, and its digest if one is wanted."""
    limit_bytes = order.limits.max_image_bytes
    size_bytes = os.fstat(source_fd).st_size
    if size_bytes > limit_bytes:
        raise DecodeFailed(
            Failure.TOO_LARGE,
            f"It has {size_bytes} bytes; pictures of more than {limit_bytes} are not decoded.",
        )
    # In one piece, lest there be two copies of it. A file that grows meanwhile is read as long as
    # it was; whoever ordered sees that it changed.
    content = read_at(source_fd, 0, size_bytes)
    algorithm = order.hash_algorithm
    return content, HASHERS[algorithm](content).digest() if algorithm else None


def _supported(content: bytes, order: Order) -> Format:
    if not content:
        raise DecodeFailed(Failure.BROKEN, EMPTY)
    found = sniff(content, order.extension)
    if found is None:
        raise DecodeFailed(
            Failure.UNSUPPORTED,
            "Its content is of no known format of pictures: convert it, or exclude such files.",
        )
    if found is Format.SVG and not order.limits.allows_svg:
        raise DecodeFailed(
            Failure.UNSUPPORTED,
            "SVG is switched off, as its files are programs: MEDIAPLANE_ALLOW_SVG=1 decodes it.",
        )
    if found is Format.PSD and (reason := why_not_decoded(content)):
        raise DecodeFailed(Failure.UNSUPPORTED, reason)
    return found


def _load(content: bytes, found: Format, size_px: int, limits: Limits) -> tuple[Loaded, bool]:
    """Return a picture, and whether parts of it are missing."""
    reasons = []
    for load, is_tolerant in _ATTEMPTS[found]:
        there = fill_up(content, found, limits.max_image_bytes) if is_tolerant else content
        try:
            loaded = load(there, found, size_px, limits, is_tolerant=is_tolerant)
        except Undecodable as error:
            reasons.append(str(error))
            continue
        # Who tolerates everything makes a grey area of a file that has nothing but a header.
        if is_tolerant and vips_loader.is_blank(loaded.image):
            continue
        return loaded, is_tolerant
    length = length_of(content, found)
    if length > len(content):
        reason = f"it is cut off after {len(content)} of {length} bytes"
    else:
        # The first to try knows the format best; the sentences that libraries add are no help.
        reason = " ".join(reasons[0].split()).partition(". ")[0][:_MAX_REASON_CHARACTERS]
    raise DecodeFailed(
        Failure.BROKEN,
        f"This {found} file cannot be decoded: {reason.rstrip('.')}. Replace it by an intact copy.",
    )
