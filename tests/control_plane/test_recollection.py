"""What is remembered for guesses: the newest, and not for ever."""

from control_plane.policy.recollection import Recollection


def test_what_was_noted_is_remembered_and_nothing_else() -> None:
    lately: Recollection[int] = Recollection(3)
    assert not lately.has_any([1, 2])
    lately.note([1, 2])
    assert lately.has_any([5, 2])
    assert not lately.has_any([3, 4])
    assert not lately.has_any([])


def test_at_least_as_many_are_kept_as_promised_and_at_most_twice_as_many() -> None:
    kept = 10
    lately: Recollection[int] = Recollection(kept)
    for newest in range(100):
        lately.note([newest])
        remembered = [key for key in range(newest + 1) if lately.has_any([key])]
        assert remembered[-kept:] == list(range(max(0, newest + 1 - kept), newest + 1))
        assert len(remembered) <= 2 * kept
