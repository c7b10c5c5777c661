"""An inquiry waits no longer than it is told to, and a question that hangs is asked once."""

import threading
from itertools import count

import pytest

from mediaplane.inquiry import Inquiry
from tests.support.waiting import PATIENCE_SECONDS


def test_an_answer_is_returned_and_asked_for_anew_each_time() -> None:
    inquiry = Inquiry(count(1).__next__)
    found = []
    for _ in range(3):
        inquiry.begin()
        found.append(inquiry.answer(20))
    assert found == [1, 2, 3]


def test_what_is_raised_comes_out_where_the_answer_would() -> None:
    def ask() -> None:
        raise OSError(5, "Input/output error")

    inquiry = Inquiry(ask)
    inquiry.begin()
    with pytest.raises(OSError, match="Input/output"):
        inquiry.answer(20)


def test_a_question_that_hangs_is_not_asked_a_second_time() -> None:
    asked, answered = threading.Semaphore(0), threading.Event()

    def ask() -> str:
        asked.release()
        answered.wait(PATIENCE_SECONDS)
        return "at last"

    inquiry = Inquiry(ask)
    for _ in range(3):
        inquiry.begin()
        with pytest.raises(TimeoutError):
            inquiry.answer(0)
    assert asked.acquire(timeout=PATIENCE_SECONDS)
    assert not asked.acquire(blocking=False)
    answered.set()
    assert inquiry.answer(20) == "at last"
