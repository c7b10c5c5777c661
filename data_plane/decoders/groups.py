"""Decodes the pictures of a video from a keyframe on, as far as they are needed."""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from av import FFmpegError, Packet, VideoFrame
from av.video.stream import VideoStream

# Only type checkers know the class as a generic one.
if TYPE_CHECKING:
    VideoPacket = Packet[VideoStream]
else:
    VideoPacket = Packet

# Without timestamps, a keyframe gets its time from the packets behind it; no decoder holds back
# more pictures than this.
MAX_REORDERED = 16
# Of these, pictures that no other refers to can be left out without a trace.
_SKIPPING_CODECS = frozenset({"h264", "mpeg1video", "mpeg2video", "mpeg4"})
_MARGIN_PIXELS = 1 << 20


class StreamDecoder:
    """The decoder of one stream; errors of single packets only leave a mark."""

    def __init__(self, stream: VideoStream, max_pixels: int) -> None:
        self.is_degraded = False
        self._context = stream.codec_context
        # One decoder process runs per core.
        self._context.thread_count = 1
        # The size may change from one picture to the next; decoders count margins of their own.
        self._context.options = {"max_pixels": str(2 * max_pixels + _MARGIN_PIXELS)}
        self._can_skip = self._context.name in _SKIPPING_CODECS

    def degrade(self) -> None:
        """Remember that part of the video is missing or broken."""
        self.is_degraded = True

    def restart(self) -> None:
        """Forget all pictures: the next packet is a keyframe."""
        self._context.flush_buffers()

    def decode(self, packet: VideoPacket | None, *, is_unseen: bool = False) -> list[VideoFrame]:
        """Return the pictures that a packet completes; without one, all that are held back."""
        self._context.skip_frame = "NONREF" if is_unseen and self._can_skip else "DEFAULT"
        try:
            return self._context.decode(packet)
        except MemoryError:
            raise
        except FFmpegError:
            self.degrade()
            return []

    def decode_keyframe(self, packets: Sequence[VideoPacket]) -> VideoFrame | None:
        """Return the picture of the first packet, which is a keyframe."""
        self.restart()
        times = [time for packet in packets if (time := packet_time(packet)) is not None]
        shown = (frame for packet in (*packets, None) for frame in self.decode(packet))
        for place, frame in enumerate(shown):
            if frame.pts is not None:
                return frame
            # Pictures that refer to others before the keyframe may come out ahead of it.
            if frame.key_frame and place < len(times):
                frame.pts = times[place]
                return frame
        return None


class Group:
    """The packets from one keyframe to the next, and those behind it that are shown before it."""

    def __init__(self, key: VideoPacket, window: int) -> None:
        self.window = window
        self.time = packet_time(key)
        # What the keyframe alone is decoded from.
        self.head: list[VideoPacket] = []
        self._waiting: deque[VideoPacket] = deque()
        self._times: list[int] = []
        self._shown_count = 0
        self._is_started = False
        self._is_drained = False
        self._shown: VideoFrame | None = None
        self._ahead: deque[VideoFrame] = deque()
        self.add(key)

    def add(self, packet: VideoPacket) -> None:
        """Take the next packet."""
        if packet.pts is not None:
            # What is shown before the keyframe refers to pictures that are not decoded here.
            if self.time is not None and packet.pts < self.time:
                return
            insort(self._times, packet.pts)
        elif packet.dts is not None:
            self._times.append(packet.dts)
        self._waiting.append(packet)
        if not self.head or (self.head[0].pts is None and len(self.head) <= MAX_REORDERED):
            self.head.append(packet)

    def show(
        self, decoder: StreamDecoder, centres: deque[int], *, is_complete: bool
    ) -> Iterator[VideoFrame]:
        """Yield what is shown at each of these times, and remove those times.

        While the group goes on, times stay for which packets are still to come.
        """
        while centres and self._reach(decoder, centres, is_complete=is_complete):
            centres.popleft()
            if self._shown is not None:
                yield self._shown

    def _reach(self, decoder: StreamDecoder, centres: deque[int], *, is_complete: bool) -> bool:
        """Decode until it is known what is shown at the first of some times."""
        wanted = self._time_shown_at(centres[0])
        while True:
            while self._ahead and _order(self._ahead[0]) <= centres[0]:
                self._shown = self._ahead.popleft()
            if self._ahead or (self._shown and time_of(self._shown) == wanted):
                return True
            if self._waiting:
                packet = self._waiting.popleft()
                self._decode(decoder, packet, wanted)
                if (
                    is_complete
                    and len(centres) == 1
                    and wanted is not None
                    and packet.pts == wanted
                ):
                    self._waiting.clear()
            elif is_complete and not self._is_drained:
                self._is_drained = True
                self._keep(decoder.decode(None))
            else:
                return is_complete

    def _time_shown_at(self, time: int) -> int | None:
        count = bisect_right(self._times, time)
        return self._times[count - 1] if count else None

    def _decode(self, decoder: StreamDecoder, packet: VideoPacket, wanted: int | None) -> None:
        if not self._is_started:
            decoder.restart()
        # A picture before the wanted one is shown at no time that is still to come.
        is_unseen = (
            self._is_started
            and packet.pts is not None
            and wanted is not None
            and packet.pts < wanted
        )
        self._is_started = True
        self._keep(decoder.decode(packet, is_unseen=is_unseen))

    def _keep(self, frames: list[VideoFrame]) -> None:
        for frame in frames:
            # Where no packet tells when it is shown, pictures are shown at the times at which
            # packets are decoded, in the order in which they come out of the decoder.
            if frame.pts is None and self._shown_count < len(self._times):
                frame.pts = self._times[self._shown_count]
            self._shown_count += 1
            time = time_of(frame)
            if time is not None and (self.time is None or time >= self.time):
                self._ahead.append(frame)


def time_of(frame: VideoFrame) -> int | None:
    """Return when a picture is shown; some containers only tell when it is decoded."""
    return frame.dts if frame.pts is None else frame.pts


def packet_time(packet: VideoPacket) -> int | None:
    """Return when the picture of a packet is shown, as far as the packet tells."""
    return packet.dts if packet.pts is None else packet.pts


def _order(frame: VideoFrame) -> int:
    time = time_of(frame)
    assert time is not None, "Frames without a time are not kept."
    return time
