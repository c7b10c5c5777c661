"""Asks what may never answer, such as a dead mount, and waits no longer than is bearable."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Found = TypeVar("Found")


class Inquiry(Generic[Found]):
    """A question asked again and again, by one thread at a time: one that hangs is one thread."""

    def __init__(self, ask: Callable[[], Found]) -> None:
        self._ask = ask
        self._answer: Future[Found] | None = None

    def begin(self) -> None:
        """Ask, unless the answer to the last time is still to come."""
        if self._answer is not None and not self._answer.done():
            return
        self._answer = Future()
        # Not of a pool, whose threads the interpreter waits for when it exits.
        threading.Thread(
            target=self._run, args=(self._answer,), name="inquiry", daemon=True
        ).start()

    def answer(self, seconds: float) -> Found:
        """Return the answer, or raise what was raised instead; TimeoutError when there is none."""
        assert self._answer is not None, "begin() comes first"
        return self._answer.result(max(0.0, seconds))

    def _run(self, answer: "Future[Found]") -> None:
        try:
            answer.set_result(self._ask())
        except Exception as error:  # noqa: BLE001 - it is for whoever asked
            answer.set_exception(error)
