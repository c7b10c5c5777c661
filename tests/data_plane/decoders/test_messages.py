"""A reply that no decoder of ours gives is not taken for one."""

from typing import Any

import pytest

from data_plane.decoders.messages import (
    Done,
    Failed,
    Failure,
    Frame,
    Made,
    Malformed,
    Order,
    Output,
    Product,
    decode_reply,
    encode_reply,
)
from mediaplane.protocol.values import MediaType

ORDER = Order(
    MediaType.VIDEO, [Output(Product.PICTURE, 320), Output(Product.SPRITE, 160)], sampling_limit=2
)
DONE = Done(
    2**31 - 1,
    1,
    [Made(320, 320, 5), Made(1600, 160, 7)],
    duration_ms=2**53 - 1,
    frames=[Frame(0, True), Frame(2**53 - 1, False)],
    poster_ms=0,
)


def answer(**fields: Any) -> dict[str, Any]:
    """A good reply, but for these fields."""
    return encode_reply(DONE) | fields


def made(**fields: Any) -> dict[str, Any]:
    """A good reply, but for these fields of its picture."""
    picture, sprite = encode_reply(DONE)["made"]
    return answer(made=[picture | fields, sprite])


def test_a_reply_arrives_as_it_was_sent() -> None:
    assert decode_reply(encode_reply(DONE), ORDER) == DONE


@pytest.mark.parametrize("code", sorted(set(Failure) - {Failure.TIMED_OUT, Failure.CRASHED}))
def test_a_failure_arrives_as_it_was_sent(code: Failure) -> None:
    failed = Failed(code, "It is so.")
    assert decode_reply(encode_reply(failed), ORDER) == failed


@pytest.mark.parametrize("code", [Failure.TIMED_OUT, Failure.CRASHED, "unheard_of", None, []])
def test_a_failure_that_is_not_for_a_process_to_say_is_malformed(code: object) -> None:
    with pytest.raises(Malformed):
        decode_reply({"code": code, "message": "It is so."}, ORDER)


@pytest.mark.parametrize(
    "reply",
    [
        answer(width=0),
        answer(width=2**31),
        answer(height=137438953408),
        answer(height=True),
        answer(duration_ms=2**53),
        answer(duration_ms=-1),
        answer(poster_ms=2**53),
        answer(bytes_read=2**53),
        answer(frames=[{"timestamp_ms": 2**53, "is_keyframe": True}]),
        answer(frames=[{"timestamp_ms": 1, "is_keyframe": True}] * 2),
        answer(frames=[{"timestamp_ms": at, "is_keyframe": True} for at in range(3)]),
        answer(made=[]),
        made(width=0),
        made(width=321),
        made(height=321),
        made(bytes_size=-1),
    ],
    ids=str,
)
def test_a_reply_with_an_impossible_number_is_malformed(reply: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        decode_reply(reply, ORDER)
