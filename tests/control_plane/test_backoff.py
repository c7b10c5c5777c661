"""The delay before another try."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.policy.backoff import Backoff
from control_plane.settings import ControlSettings


def exactly(_low: float, _high: float) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (6, 30), (10**6, 30)]
)
def test_delays_double_up_to_half_a_minute(attempt: int, seconds: float) -> None:
    assert Backoff().delay(attempt, exactly) == seconds


def test_the_settings_say_the_same() -> None:
    settings = ControlSettings()
    chosen = (settings.retry_base_seconds, settings.retry_max_seconds, settings.retry_jitter)
    assert chosen == (1.0, 30.0, 0.2)
    assert Backoff(*chosen) == Backoff()


def test_a_delay_is_spread_by_a_fifth_to_both_sides() -> None:
    assert Backoff().delay(3, min) == pytest.approx(8 * 0.8)
    assert Backoff().delay(3, max) == pytest.approx(8 * 1.2)


@given(
    attempt=st.integers(0, 5000),
    base=st.floats(0.001, 1000),
    limit=st.floats(0, 1000),
    jitter=st.floats(0, 1),
)
def test_a_delay_is_never_out_of_bounds(
    attempt: int, base: float, limit: float, jitter: float
) -> None:
    seconds = Backoff(base, limit, jitter).delay(attempt)
    expected = min(base * 2.0 ** min(attempt, 100), limit)
    assert expected * (1 - jitter) <= seconds * (1 + 1e-9)
    assert seconds <= expected * (1 + jitter) * (1 + 1e-9)


def test_delays_of_many_failures_differ() -> None:
    assert len({Backoff().delay(4) for _ in range(20)}) > 1
