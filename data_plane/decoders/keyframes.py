"""Chooses the most typical keyframe of a window of a video."""

from collections.abc import Iterable, Sequence

import numpy as np
from av import VideoFrame

from data_plane.decoders.groups import StreamDecoder, VideoPacket
from data_plane.decoders.messages import FrameMeasure
from data_plane.decoders.stills import shrink
from data_plane.decoders.typicality import sort_by_likeness
from data_plane.decoders.windows import MINIATURE_PX, Miniature

# Every picture of some videos is a keyframe, and windows may last hours.
_KEPT_BYTES = 64 << 20
_KEPT_KEYFRAMES = 20_000


class Keyframes:
    """The keyframes of one window, as packets: only one of them is needed in full in the end."""

    def __init__(self, decoder: StreamDecoder, measure: FrameMeasure) -> None:
        self._decoder = decoder
        self._measure = measure
        self._forget()

    def add(self, head: Sequence[VideoPacket]) -> None:
        """Take a keyframe, given by the packets that it is decoded from."""
        self._heads.append(head)
        self._bytes_kept += head[0].size
        if self._bytes_kept > _KEPT_BYTES or len(self._heads) > _KEPT_KEYFRAMES:
            self._drop_unlikely()

    def choose(self) -> VideoFrame | None:
        """Return the most typical of the keyframes that can be decoded, and forget them all."""
        # Two pictures are equally far from their mean: the first is as good as the second.
        alike = 2 if self._measure is FrameMeasure.MSE else 1
        is_settled = not self._seen and len(self._heads) <= alike
        order: Iterable[int] = range(len(self._heads)) if is_settled else self._sort()
        heads = [self._heads[index] for index in order]
        self._forget()
        for head in heads:
            if frame := self._decoder.decode_keyframe(head):
                return frame
        return None

    def _forget(self) -> None:
        self._heads: list[Sequence[VideoPacket]] = []
        self._bytes_kept = 0
        # Of the first of these keyframes, the others have not been decoded yet.
        self._miniatures: list[Miniature] = []
        # Of all that were decoded, those that were dropped as well.
        self._sum = np.zeros((MINIATURE_PX, MINIATURE_PX, 3))
        self._seen = 0

    def _sort(self) -> list[int]:
        """Return the positions of the keyframes that can be decoded, the most typical first."""
        self._see()
        if not self._seen:
            return []
        return sort_by_likeness(self._miniatures, self._sum / self._seen, self._measure)

    def _see(self) -> None:
        """Decode the keyframes that have come since, and keep those with which that works."""
        unseen = self._heads[len(self._miniatures) :]
        del self._heads[len(self._miniatures) :]
        for head in unseen:
            if frame := self._decoder.decode_keyframe(head):
                miniature = shrink(frame)
                self._heads.append(head)
                self._miniatures.append(miniature)
                self._sum += miniature
                self._seen += 1

    def _drop_unlikely(self) -> None:
        """Drop the half that is furthest from the mean so far, which still counts them."""
        order = self._sort()
        likely = sorted(order[: (len(order) + 1) // 2])
        self._heads = [self._heads[index] for index in likely]
        self._miniatures = [self._miniatures[index] for index in likely]
        self._bytes_kept = sum(head[0].size for head in self._heads)
