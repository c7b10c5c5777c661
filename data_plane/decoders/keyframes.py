"""Chooses the most typical keyframe of a window of a video."""

from collections.abc import Iterable, Sequence

from av import VideoFrame

from data_plane.decoders.groups import StreamDecoder, VideoPacket
from data_plane.decoders.messages import FrameMeasure
from data_plane.decoders.stills import shrink
from data_plane.decoders.windows import Miniature, sort_by_typicality

# Every picture of some videos is a keyframe, and windows may last minutes.
_KEPT_BYTES = 64 << 20


class Keyframes:
    """The keyframes of one window, as packets: only one of them is needed in full in the end."""

    def __init__(self, decoder: StreamDecoder, measure: FrameMeasure) -> None:
        self._decoder = decoder
        self._measure = measure
        self._heads: list[Sequence[VideoPacket]] = []
        self._miniatures: list[Miniature | None] = []
        self._bytes_kept = 0

    def add(self, head: Sequence[VideoPacket]) -> None:
        """Take a keyframe, given by the packets that it is decoded from."""
        self._heads.append(head)
        self._bytes_kept += head[0].size
        if self._bytes_kept > _KEPT_BYTES:
            self._drop_unlikely()

    def choose(self) -> VideoFrame | None:
        """Return the most typical of the keyframes that can be decoded, and forget them all."""
        # Two pictures are equally far from their mean: the first is as good as the second.
        is_settled = len(self._heads) <= (2 if self._measure is FrameMeasure.MSE else 1)
        order: Iterable[int] = range(len(self._heads)) if is_settled else self._sort()
        heads = [self._heads[index] for index in order]
        self._heads, self._miniatures, self._bytes_kept = [], [], 0
        for head in heads:
            if head and (frame := self._decoder.decode_keyframe(head)):
                return frame
        return None

    def _sort(self) -> list[int]:
        """Return the positions of the keyframes that can be decoded, the most typical first."""
        for head in self._heads[len(self._miniatures) :]:
            frame = self._decoder.decode_keyframe(head)
            self._miniatures.append(None if frame is None else shrink(frame))
        decoded = [index for index, one in enumerate(self._miniatures) if one is not None]
        miniatures = [one for one in self._miniatures if one is not None]
        if not miniatures:
            return []
        return [decoded[index] for index in sort_by_typicality(miniatures, self._measure)]

    def _drop_unlikely(self) -> None:
        """Drop the half that is furthest from the mean so far, which still counts them."""
        order = self._sort()
        likely = set(order[: len(order) // 2])
        self._heads = [head if index in likely else () for index, head in enumerate(self._heads)]
        self._bytes_kept = sum(head[0].size for head in self._heads if head)
