"""Opens containers of video, and only those that hold their content themselves."""

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import av
from av import FFmpegError
from av.container import InputContainer
from av.stream import Discard, Disposition
from av.video.stream import VideoStream

from data_plane.decoders.gate import refuse_too_large
from data_plane.decoders.groups import VideoPacket, packet_time
from data_plane.decoders.messages import EMPTY, DecodeFailed, Failure, Limits
from data_plane.decoders.reordering import tell_times
from data_plane.decoders.sources import Source

# No playlists: they name other files.
_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,ogg,asf,flv,mxf,dv,rm,wtv"
)
# Where Matroska tells how long one of several streams is.
_TAGGED_DURATION = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")
# AVI does not tell when a picture is shown. For these codecs FFmpeg guesses as if none were shown
# later than others that follow it in the file, so its guess is not used.
_REORDERED = frozenset({"h264", "hevc"})
# Durations are not exact: a video that comes this close to its own is whole.
_WHOLE = 0.9
# What these formats begin with, some bytes into the file: to tell a broken one from another.
_MAGIC = (
    (4, (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")),
    (8, (b"AVI ",)),
    (0, (b"\x1a\x45\xdf\xa3", b"OggS", b"FLV\x01", b"\x30\x26\xb2\x75", b".RMF")),
    (0, (b"\0\0\x01\xba", b"\0\0\x01\xb3", b"\x06\x0e\x2b\x34", b"\x1f\x07\0")),
)


def open_container(source: Source) -> InputContainer:
    """Open a video, or raise DecodeFailed."""
    head = source.read(16)
    if not head:
        raise DecodeFailed(Failure.BROKEN, EMPTY)
    source.seek(0)
    try:
        return av.open(
            source,
            "r",
            # The descriptor is open already, and there is nothing else to open.
            options={"format_whitelist": _FORMATS, "protocol_whitelist": "none"},
            metadata_errors="replace",
            buffer_size=64 << 10,
        )
    except MemoryError:
        raise
    except (FFmpegError, ValueError) as error:
        if any(head[offset:].startswith(begins) for offset, begins in _MAGIC):
            raise DecodeFailed(
                Failure.BROKEN,
                "It begins as a video and cannot be read any further: it may be incomplete.",
            ) from error
        raise DecodeFailed(
            Failure.UNSUPPORTED, "It is not a video of a format that is decoded here."
        ) from error


def find_video(container: InputContainer, limits: Limits) -> VideoStream:
    """Return the video of a container, and let the demuxer pass over the rest; or DecodeFailed."""
    videos = [
        stream
        for stream in container.streams.video
        if not stream.disposition & (Disposition.attached_pic | Disposition.still_image)
    ]
    if not videos:
        raise DecodeFailed(Failure.NO_VIDEO, "It has no video, only sound or a cover picture.")
    # Previews come beside the video itself.
    video = max(videos, key=lambda stream: stream.width * stream.height)
    if video.codec_context is None:
        raise DecodeFailed(Failure.UNSUPPORTED, "Its video is of a codec that is not decoded here.")
    refuse_too_large(video.width, video.height, limits)
    for stream in container.streams:
        if stream is not video:
            stream.discard = Discard.all
    return video


def start_of(video: VideoStream) -> int:
    """Return when a video begins; whatever comes before zero is never shown."""
    return max(0, video.start_time or 0)


def duration_of(container: InputContainer, video: VideoStream) -> int | None:
    """Return how long a video is in units of its time base, if its container says so."""
    if own := _own_duration(video):
        return own
    if video.time_base and container.duration:
        # Of all streams together, and each may begin by itself.
        end = Fraction(container.duration + (container.start_time or 0), av.time_base)
        return max(0, int(end / video.time_base) - start_of(video)) or None
    return None


def _own_duration(video: VideoStream) -> int | None:
    tagged = _TAGGED_DURATION.fullmatch(video.metadata.get("DURATION", ""))
    if video.duration or not tagged or not video.time_base:
        return video.duration
    hours, minutes, seconds = tagged.groups()
    total = int(hours) * 3600 + int(minutes) * 60 + Fraction(seconds)
    # Counted from zero, wherever the stream begins.
    return max(0, int(total / video.time_base) - start_of(video)) or None


def read_packets(
    container: InputContainer, video: VideoStream, degrade: Callable[[], None]
) -> Iterator[VideoPacket]:
    """Yield the packets of a video up to its end, or up to where it cannot be read further."""
    end = 0
    try:
        for packet in _demux(container, video):
            if packet.is_corrupt:
                degrade()
            # An empty one stands for the end.
            if packet.size:
                end = max(end, end_of(packet))
                yield packet
    except MemoryError:
        raise
    except FFmpegError:
        degrade()
    # Most demuxers just end where a file was cut off.
    if (end - start_of(video)) < (_own_duration(video) or 0) * _WHOLE:
        degrade()


def _demux(container: InputContainer, video: VideoStream) -> Iterator[VideoPacket]:
    is_guessed = container.format.name == "avi" and video.codec_context.name in _REORDERED
    packets = container.demux(video)
    return tell_times(packets, video) if is_guessed else packets


def end_of(packet: VideoPacket) -> int:
    """Return until when the picture of a packet is shown, as far as the packet tells."""
    return (packet_time(packet) or 0) + (packet.duration or 0)


def seek_keyframes(
    container: InputContainer, video: VideoStream, times: Iterable[int]
) -> Iterator[VideoPacket]:
    """Yield the keyframe before each of some ascending times, reading little else."""
    last = None
    for time in times:
        try:
            container.seek(time, stream=video)
            key = next((one for one in _demux(container, video) if one.is_keyframe), None)
        except MemoryError:
            raise
        except FFmpegError:
            return
        if key and key.size and packet_time(key) != last:
            last = packet_time(key)
            yield key
