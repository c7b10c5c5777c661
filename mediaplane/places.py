"""The threads that answer calls, which end calls that send no request when threads run short."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grpc

from mediaplane.errors import InvalidArgument, Overloaded

log = logging.getLogger(__name__)

# Between two lines of the log about silent calls: who makes them should not fill it.
_TELL_SECONDS = 60.0


class Places(ThreadPoolExecutor):
    """Threads that know how many calls they have been given, and which of those are silent.

    gRPC hands a call over when its headers have come. Its request follows in the same packet, or
    late, or never, and it takes a thread to wait for it. So handlers take every request as a
    stream, and wait for it here, where that can be ended.
    """

    def __init__(self, threads: int, waiting: int, patience_seconds: float, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._size = threads
        self._limit = threads + waiting
        self._patience_seconds = patience_seconds
        self._lock = threading.Lock()
        self._taken = 0
        self._is_relieving = False
        self._ended = 0
        self._tell_at = 0.0
        # Since when each call has waited for its request, the oldest first.
        self._silent: dict[grpc.ServicerContext, float] = {}

    def submit(self, *arguments: Any, **options: Any) -> "Future[Any]":
        """Take a call on, and count it until it has ended."""
        self._count(1)
        future = super().submit(*arguments, **options)
        future.add_done_callback(lambda _: self._count(-1))
        return future

    @property
    def are_taken(self) -> bool:
        return self._taken >= self._limit

    def request(
        self,
        requests: Iterator[bytes],
        context: grpc.ServicerContext,
        deserialize: Callable[[bytes], Any] | None,
    ) -> Any:
        """Wait for the one request of a call."""
        self._silent[context] = time.monotonic()
        try:
            data = next(requests, None)
        except grpc.RpcError:
            self._silent.pop(context, None)
            raise
        # Whoever takes it out of there decides what becomes of the call.
        if self._silent.pop(context, None) is None:
            raise Overloaded("The request came too late for a busy server; try again.")
        if data is None:
            raise InvalidArgument("The call has ended without a request; send one.")
        try:
            return data if deserialize is None else deserialize(data)
        except Exception as error:  # whatever a parser raises
            raise InvalidArgument("The request cannot be read; is it of this method?") from error

    def _count(self, change: int) -> None:
        with self._lock:
            self._taken += change
            if self._is_relieving or self._taken <= self._size:
                return
            self._is_relieving = True
        threading.Thread(target=self._relieve, name="relief", daemon=True).start()

    def _relieve(self) -> None:
        """End silent calls for as long as others wait for a thread."""
        while self._is_short():
            self._ended += self._end_silent()
            time.sleep(self._patience_seconds / 4)
        if self._ended and time.monotonic() >= self._tell_at:
            log.warning("Ended %d calls whose request did not come in time", self._ended)
            self._ended, self._tell_at = 0, time.monotonic() + _TELL_SECONDS

    def _is_short(self) -> bool:
        with self._lock:
            self._is_relieving = self._taken > self._size
            return self._is_relieving

    def _end_silent(self) -> int:
        """End as many calls as others wait for a thread, those that have been silent longest."""
        latest = time.monotonic() - self._patience_seconds
        ended = 0
        for context, since in list(self._silent.items())[: max(0, self._taken - self._size)]:
            if since <= latest and self._silent.pop(context, None) is not None:
                context.cancel()
                ended += 1
        return ended


def spare_places() -> Places:
    """Return places for health checks and refusals, which are answered without doing anything."""
    # So many that a thousand silent checks are ended, and a true one is answered, in a second.
    return Places(256, 0, 0.1, "spare")
