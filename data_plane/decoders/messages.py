"""What is said between the data plane and a decoder process: one order, one reply, as JSON.

A decoder has read hostile bytes: whatever it answers is checked here, field by field, and nothing
of it is ever unpickled or used as a path.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from mediaplane.protocol.values import HashAlgorithm, MediaType, ThumbnailFormat


class Product(StrEnum):
    """What can be made of a source, each into a file of its own."""

    PICTURE = "picture"  # a scaled picture of an image, or of a video's poster
    FRAMES = "frames"  # a ZIP archive of a video's frames, named by milliseconds
    SPRITE = "sprite"  # one JPEG of small frames, for scrubbing
    SPRITE_INDEX = "sprite_index"  # where in it each frame is, as WebVTT


class FrameMeasure(StrEnum):
    """How the most typical of several keyframes is found."""

    MSE = "mse"
    SSIM = "ssim"


class Failure(StrEnum):
    """Why nothing could be made of a source."""

    UNSUPPORTED = "unsupported"  # not a format that is decoded here, or one that is switched off
    BROKEN = "broken"  # of a known format, and not to be decoded
    TOO_LARGE = "too_large"  # beyond a limit that its header already shows
    NO_VIDEO = "no_video"  # sound alone, say
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"  # where the files are made: not the fault of the source
    # Said by the data plane of the process, never by the process itself.
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Output:
    """One file to make."""

    product: Product
    # Length of the longer side at most, in pixels; of a tile for sprites. Never enlarged.
    size_px: int
    format: ThumbnailFormat = ThumbnailFormat.JPEG


@dataclass(frozen=True)
class Limits:
    """What a decoder refuses, or does not read."""

    max_pixels: int = 268_435_456
    max_image_bytes: int = 1 << 30
    max_duration_seconds: float = 24 * 3600.0
    allows_svg: bool = False


@dataclass(frozen=True)
class Order:
    """Everything to make of one source, which is read once."""

    media_type: MediaType
    outputs: Sequence[Output]
    limits: Limits = Limits()
    # The extension without a dot, in lower case: formats without a magic number need it.
    extension: str = ""
    # Also hash the content, all of it.
    hash_algorithm: HashAlgorithm | None = None
    # How many windows a video is cut into, and how a frame is chosen in each.
    sampling_limit: int = 100
    measure: FrameMeasure = FrameMeasure.MSE


@dataclass(frozen=True)
class Frame:
    """A frame that represents a window of a video."""

    timestamp_ms: int
    is_keyframe: bool


@dataclass(frozen=True)
class Made:
    """One file that was made."""

    width: int
    height: int
    bytes_size: int


@dataclass(frozen=True)
class Done:
    """What came of an order."""

    # Of the source, as it is shown: turned upright.
    width: int
    height: int
    # In the order of the outputs.
    made: Sequence[Made]
    # Part of the source could not be decoded; the picture shows the rest.
    is_degraded: bool = False
    duration_ms: int | None = None
    frames: Sequence[Frame] = ()
    poster_ms: int | None = None
    digest: bytes | None = None
    bytes_read: int = 0


@dataclass(frozen=True)
class Failed:
    """Why nothing came of an order."""

    code: Failure
    message: str


EMPTY = "It is empty: replace it by an intact copy."


class DecodeFailed(Exception):
    """Raised inside a decoder: nothing can be made of this source."""

    def __init__(self, code: Failure, message: str) -> None:
        super().__init__(message)
        self.failed = Failed(code, message)


# Those that the data plane says of a process.
_NEVER_ANSWERED = (Failure.TIMED_OUT, Failure.CRASHED)
_MAX_SIDE_PX = 2**31 - 1
# Every whole number below it is one of JSON and of JavaScript as well.
_MAX_COUNT = 2**53 - 1


class Malformed(Exception):
    """A decoder answered what no decoder of ours answers."""


def encode_order(order: Order) -> dict[str, Any]:
    """Return an order as JSON can hold it."""
    return asdict(order)


def decode_order(data: dict[str, Any]) -> Order:
    """Return the order that was encoded."""
    algorithm = data["hash_algorithm"]
    return Order(
        MediaType(data["media_type"]),
        [
            Output(Product(one["product"]), one["size_px"], ThumbnailFormat(one["format"]))
            for one in data["outputs"]
        ],
        Limits(**data["limits"]),
        data["extension"],
        HashAlgorithm(algorithm) if algorithm else None,
        data["sampling_limit"],
        FrameMeasure(data["measure"]),
    )


def encode_reply(reply: Done | Failed) -> dict[str, Any]:
    """Return a reply as JSON can hold it."""
    if isinstance(reply, Failed):
        return {"code": reply.code, "message": reply.message}
    return asdict(reply) | {"digest": reply.digest.hex() if reply.digest else None}


def decode_reply(data: Any, order: Order) -> Done | Failed:
    """Return the reply to an order, if it can be one."""
    try:
        if "code" in data:
            return _failed(data)
        done = Done(
            width=_side(data["width"]),
            height=_side(data["height"]),
            made=[
                _made(one, output) for one, output in zip(data["made"], order.outputs, strict=True)
            ],
            is_degraded=data["is_degraded"] is True,
            duration_ms=_count_or_none(data["duration_ms"]),
            frames=[
                Frame(_count(one["timestamp_ms"]), one["is_keyframe"] is True)
                for one in data["frames"]
            ],
            poster_ms=_count_or_none(data["poster_ms"]),
            digest=bytes.fromhex(data["digest"]) if data["digest"] else None,
            bytes_read=_count(data["bytes_read"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(str(error)) from None
    has_digest = done.digest is not None and len(done.digest) == 32
    times = [frame.timestamp_ms for frame in done.frames]
    if (
        len(times) > max(1, order.sampling_limit)
        or len(set(times)) != len(times)
        or has_digest != (order.hash_algorithm is not None)
    ):
        raise Malformed("The reply does not fit its order.")
    return done


def _failed(data: dict[str, Any]) -> Failed:
    code = Failure(data["code"])
    if code in _NEVER_ANSWERED:
        raise ValueError(f"{code} is not for a decoder to say.")
    return Failed(code, str(data["message"])[:500])


def _made(data: dict[str, Any], output: Output) -> Made:
    longest_px = output.size_px if output.product is Product.PICTURE else _MAX_SIDE_PX
    return Made(
        _side(data["width"], longest_px),
        _side(data["height"], longest_px),
        _count(data["bytes_size"]),
    )


def _side(value: Any, longest_px: int = _MAX_SIDE_PX) -> int:
    if not 1 <= _count(value) <= longest_px:
        raise ValueError(f"No side has {value} pixels.")
    return _count(value)


def _count_or_none(value: Any) -> int | None:
    return None if value is None else _count(value)


def _count(value: Any) -> int:
    """Return a whole number that columns and clients can hold."""
    if type(value) is not int or not 0 <= value <= _MAX_COUNT:
        raise ValueError(f"{value!r} is not a count.")
    return value
