"""Makes posters, frames and sprites of videos, in one pass over the file.

A timestamp is what the stream itself says and what `ffprobe` prints as `pts_time`, in whole
milliseconds. It does not count from the first frame: where a stream begins at 1.4 seconds, so do
the timestamps of its frames.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from av import VideoFrame
from av.container import InputContainer
from av.video.stream import VideoStream

from data_plane.decoders.clusters import all_but_the_last
from data_plane.decoders.containers import (
    duration_of,
    end_of,
    find_video,
    open_container,
    read_packets,
    seek_keyframes,
    start_of,
)
from data_plane.decoders.endings import is_cut_off
from data_plane.decoders.frames import pick_frames
from data_plane.decoders.galleries import Gallery
from data_plane.decoders.groups import StreamDecoder, time_of
from data_plane.decoders.messages import DecodeFailed, Done, Failure, Frame, Order, Product
from data_plane.decoders.sources import Source
from data_plane.decoders.stills import Still, draw
from data_plane.decoders.windows import Windows

# Enough to find a poster.
_POSTER_WINDOWS = 10


@dataclass(frozen=True)
class _Opened:
    """A video that is being read."""

    order: Order
    container: InputContainer
    video: VideoStream
    windows: Windows
    decoder: StreamDecoder


@dataclass(frozen=True)
class _Sampled:
    """What was found in a video."""

    gallery: Gallery
    start_ms: int
    duration_ms: int
    is_degraded: bool


def make(order: Order, source_fd: int, output_fds: Sequence[int]) -> Done:
    """Make all outputs of one video, and its hash if that is ordered."""
    # Nothing is written before all is read: until then, an output has room for the source.
    source = Source(source_fd, order.hash_algorithm, output_fds[0])
    is_poster_only = all(output.product is Product.PICTURE for output in order.outputs)
    if is_poster_only:
        hasty = replace(order, sampling_limit=_POSTER_WINDOWS)
        with source.spooling():
            sampled = _sample(hasty, source, _pick_some)
        if not sampled.gallery.posters.has_typical:
            sampled = _sample(hasty, source, _pick_all)
    else:
        sampled = _sample(order, source, _pick_all)
    gallery, poster = sampled.gallery, sampled.gallery.posters.choose()
    if poster is None:
        raise DecodeFailed(Failure.BROKEN, "None of its frames can be decoded.")
    digest = source.finish()
    return Done(
        poster.width,
        poster.height,
        gallery.write(poster, sampled.start_ms, sampled.duration_ms, output_fds),
        sampled.is_degraded,
        sampled.duration_ms,
        [] if is_poster_only else gallery.frames,
        poster.frame.timestamp_ms,
        digest,
        source.bytes_read,
    )


def _sample(
    order: Order, source: Source, pick: Callable[[_Opened], Iterator[VideoFrame]]
) -> _Sampled:
    source.seek(0)
    # Of a video in fragments, a demuxer looks at all before it begins anew.
    with source.spooling():
        container = open_container(source)
    with container:
        video = find_video(container, order.limits)
        decoder = StreamDecoder(video, order.limits.max_pixels)
        # Now, as its beginning is forgotten later.
        with source.spooling():
            if is_cut_off(source, container.format.name):
                decoder.degrade()
        windows = _cut(order, source, container, video)
        opened = _Opened(order, container, video, windows, decoder)
        gallery = Gallery(order.outputs)
        for still in _draw_distinct(pick(opened), opened):
            gallery.add(still)
        return _Sampled(
            gallery,
            _milliseconds(windows.start, video),
            _milliseconds(windows.duration, video),
            opened.decoder.is_degraded,
        )


def _cut(order: Order, source: Source, container: InputContainer, video: VideoStream) -> Windows:
    start = start_of(video)
    duration = duration_of(container, video) or _measure_duration(source, order, start)
    seconds = _milliseconds(duration, video) / 1000
    if seconds > order.limits.max_duration_seconds:
        raise DecodeFailed(
            Failure.TOO_LARGE,
            f"It takes {seconds:.0f} seconds and the limit is"
            f" {order.limits.max_duration_seconds:.0f}: raise MEDIAPLANE_MAX_VIDEO_SECONDS.",
        )
    return Windows(start, duration, max(1, order.sampling_limit))


def _measure_duration(source: Source, order: Order, start: int) -> int:
    """Learn how long a video is that does not say so, as one that was cut off does not."""
    if gap := all_but_the_last(source):
        # Whatever cannot be read of the last part alone is read of the whole.
        with suppress(DecodeFailed), source.without(gap):
            if (end := _last_end(source, order)) > start:
                return end - start
    position = source.tell()
    source.seek(0)
    with source.spooling():
        end = _last_end(source, order)
    # The container that was open before goes on where it was.
    source.seek(position)
    return max(1, end - start)


def _last_end(source: Source, order: Order) -> int:
    with open_container(source) as container:
        video = find_video(container, order.limits)
        return max(map(end_of, read_packets(container, video, lambda: None)), default=0)


def _pick_all(opened: _Opened) -> Iterator[VideoFrame]:
    """Yield a frame for each window."""
    packets = read_packets(opened.container, opened.video, opened.decoder.degrade)
    return pick_frames(packets, opened.decoder, opened.windows, opened.order.measure)


def _pick_some(opened: _Opened) -> Iterator[VideoFrame]:
    """Yield keyframes from all over a video, of which little is read for them."""
    centres = map(opened.windows.centre_of, range(opened.windows.count))
    for packet in seek_keyframes(opened.container, opened.video, centres):
        if frame := opened.decoder.decode_keyframe([packet]):
            yield frame


def _draw_distinct(frames: Iterator[VideoFrame], opened: _Opened) -> Iterator[Still]:
    """Yield pictures of frames that can be told apart by their timestamp."""
    pixel_aspect = opened.video.sample_aspect_ratio or Fraction(1)
    size_px = max(output.size_px for output in opened.order.outputs)
    last_ms = -1
    for frame in frames:
        timestamp_ms = _milliseconds(time_of(frame) or 0, opened.video)
        if timestamp_ms > last_ms:
            last_ms = timestamp_ms
            if frame.is_corrupt:
                opened.decoder.degrade()
            yield draw(frame, Frame(timestamp_ms, frame.key_frame), pixel_aspect, size_px)


def _milliseconds(time: int, video: VideoStream) -> int:
    return round(time * (video.time_base or Fraction(1)) * 1000)
