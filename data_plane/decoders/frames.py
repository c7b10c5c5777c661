"""Picks the frame that represents each window of a video, in one pass over its packets.

Packets are held from one keyframe to the next, and decoded only if a window turns out to have no
keyframe: what is shown at its centre is found by decoding on from the keyframe before.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from av import VideoFrame

from data_plane.decoders.groups import MAX_REORDERED, Group, StreamDecoder, VideoPacket, packet_time
from data_plane.decoders.keyframes import Keyframes
from data_plane.decoders.messages import FrameMeasure
from data_plane.decoders.windows import Windows


def pick_frames(
    packets: Iterable[VideoPacket], decoder: StreamDecoder, windows: Windows, measure: FrameMeasure
) -> Iterator[VideoFrame]:
    """Yield the frame of each window, in order; the same again where a picture stands still."""
    sampler = _Sampler(decoder, windows, measure)
    for packet in packets:
        yield from sampler.take(packet)
    yield from sampler.finish()


class _Sampler:
    """Where a pass over a video is."""

    def __init__(self, decoder: StreamDecoder, windows: Windows, measure: FrameMeasure) -> None:
        self._decoder = decoder
        self._windows = windows
        # Of the window that the last keyframe is in.
        self._keyframes = Keyframes(decoder, measure)
        self._group: Group | None = None
        # Its first pictures may still belong to the group before, which they are shown in.
        self._successor: Group | None = None
        # The first window of which it is not known yet whether there is a keyframe in it, and the
        # centres of those before that have none and whose frames have not come yet.
        self._open_window = 0
        self._centres: deque[int] = deque()

    def take(self, packet: VideoPacket) -> Iterator[VideoFrame]:
        """Take the next packet, and yield the frames that it settles."""
        if self._successor and _is_leading(packet, self._successor):
            self._successor.add(packet)
        elif self._successor:
            yield from self._succeed(self._successor)
        if self._group is None:
            self._enter(self._begin(packet))
            return
        self._group.add(packet)
        if packet.is_keyframe:
            self._successor = self._begin(packet)
        elif self._successor is None and packet.dts is not None:
            # No picture is shown before it is decoded, so no keyframe before here is to come.
            yield from self._settle(self._group, self._windows.index_of(packet.dts))

    def finish(self) -> Iterator[VideoFrame]:
        """Yield the frames of all windows that are left."""
        if self._successor:
            yield from self._succeed(self._successor)
        if self._group:
            yield from self._settle(self._group, self._windows.count, is_complete=True)

    def _begin(self, packet: VideoPacket) -> Group:
        time = packet_time(packet)
        window = -1 if time is None else self._windows.index_of(time)
        # Time may jump back where recordings were joined, windows do not.
        return Group(packet, max(window, self._group.window if self._group else window))

    def _enter(self, group: Group) -> None:
        self._group, self._successor = group, None
        if group.window >= self._open_window:
            # Only before the very first picture can there be windows left, and they stay empty.
            self._open_window = group.window
            self._keyframes.add(group.head)

    def _succeed(self, successor: Group) -> Iterator[VideoFrame]:
        if self._group:
            yield from self._settle(self._group, successor.window, is_complete=True)
        self._enter(successor)

    def _settle(
        self, group: Group, reached: int, *, is_complete: bool = False
    ) -> Iterator[VideoFrame]:
        """Yield the frames of all windows before one, into which no further keyframe falls."""
        if reached > group.window >= self._open_window:
            self._open_window = group.window + 1
            if frame := self._keyframes.choose():
                yield frame
        if reached > self._open_window:
            self._centres.extend(map(self._windows.centre_of, range(self._open_window, reached)))
            self._open_window = reached
        yield from group.show(self._decoder, self._centres, is_complete=is_complete)
        if is_complete:
            self._centres.clear()


def _is_leading(packet: VideoPacket, successor: Group) -> bool:
    """Tell whether a packet behind a keyframe is shown before it, as far as can be known."""
    if packet.is_keyframe:
        return False
    if packet.pts is None or successor.time is None:
        return len(successor.head) <= MAX_REORDERED
    return packet.pts < successor.time
