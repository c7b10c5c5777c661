"""Finds out when pictures are shown whose container only tells when they are decoded."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from av import CodecContext, FFmpegError
from av.codec.context import Flags
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from data_plane.decoders.groups import MAX_REORDERED, VideoPacket


def tell_times(packets: Iterable[VideoPacket], video: VideoStream) -> Iterator[VideoPacket]:
    """Give each packet of a video the time at which its picture is shown.

    Pictures are shown at the times at which packets are decoded, in the order in which they come
    out of a decoder: no other way to learn that order is exact, so everything is decoded for it.
    """
    order = _Order(video)
    for packet in packets:
        if packet.size:
            yield from order.take(packet)
    yield from order.finish()


class _Order:
    """Packets until it is known when their pictures are shown."""

    def __init__(self, video: VideoStream) -> None:
        context = CodecContext.create(video.codec_context.name, "r")
        assert isinstance(context, VideoCodecContext)
        context.extradata = video.codec_context.extradata
        context.thread_count = 1
        context.options = video.codec_context.options
        # Behind a jump, pictures that refer to others before it take their place in the order too.
        context.flags |= Flags.output_corrupt
        self._context = context
        self._count = 0
        self._waiting: deque[tuple[int, VideoPacket]] = deque()
        self._free_times: deque[int] = deque()
        self._shown_at: dict[int, int] = {}

    def take(self, packet: VideoPacket) -> Iterator[VideoPacket]:
        """Take the next packet, and return those of which the time is known."""
        self._waiting.append((self._count, packet))
        if packet.dts is not None:
            self._free_times.append(packet.dts)
        # A picture has the time of its packet, so it tells which packet it is of.
        packet.pts = self._count
        self._count += 1
        self._see(packet)
        return self._release(self._count - 2 * MAX_REORDERED)

    def finish(self) -> Iterator[VideoPacket]:
        """Return the packets that are left."""
        self._see(None)
        return self._release(self._count)

    def _see(self, packet: VideoPacket | None) -> None:
        try:
            frames = self._context.decode(packet)
        except MemoryError:
            raise
        except FFmpegError:
            return  # the packet is decoded once more where that matters
        for frame in frames:
            if frame.pts is not None and self._free_times:
                self._shown_at[frame.pts] = self._free_times.popleft()

    def _release(self, given_up: int) -> Iterator[VideoPacket]:
        while self._waiting:
            number, packet = self._waiting[0]
            if number not in self._shown_at and number >= given_up:
                return
            self._waiting.popleft()
            # No picture is shown before it is decoded: so from here on, none before this time.
            packet.dts = min((*self._shown_at.values(), *islice(self._free_times, 1)), default=None)
            # Of what cannot be decoded nothing is shown.
            packet.pts = self._shown_at.pop(number, None)
            yield packet
