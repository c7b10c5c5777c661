"""Counts the gRPC calls that a server has handled, by method and status code."""

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc
from google.protobuf import descriptor_pool

from mediaplane.counters import Counter, Histogram
from mediaplane.interceptors import KINDS

# A method answers with a few codes; should a caller coax more out of one, they are one figure.
MAX_CODES = 6
_OTHER = "OTHER"
_BOUNDS = (0.01, 0.1, 1.0, 5.0)


class CallMeter(grpc.ServerInterceptor):
    """Measures the calls of some services; health checks and reflection are not work."""

    def __init__(self) -> None:
        self.handled = Counter(
            "grpc_server_handled_total",
            "Calls that have ended, by method and status code.",
            ("grpc_service", "grpc_method", "grpc_code"),
        )
        self.latency = Histogram(
            "grpc_server_handling_seconds",
            "Seconds that a call with one answer took.",
            _BOUNDS,
            ("grpc_service", "grpc_method"),
        )
        self._codes: dict[tuple[str, str], set[str]] = {}

    def cover(self, services: Iterable[str]) -> None:
        """Measure the methods of these services, and no other."""
        for service in services:
            for method in descriptor_pool.Default().FindServiceByName(service).methods:
                self._codes[service, method.name] = {"OK"}
                self.handled.add(service, method.name, "OK", amount=0)

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wrap the handler of a call that is measured."""
        handler = continuation(details)
        method = tuple(details.method.split("/")[1:])
        if handler is None or method not in self._codes:
            return handler
        name, kind = KINDS[handler.request_streaming, handler.response_streaming]
        behaviour = getattr(handler, name)
        wrap = self._stream if handler.response_streaming else self._call
        # With all that is attached to it, such as the threads that are to answer.
        measured = functools.wraps(behaviour)(wrap(behaviour, method))
        return kind(measured, handler.request_deserializer, handler.response_serializer)

    def _call(self, behaviour: Callable[..., Any], method: tuple[str, str]) -> Callable[..., Any]:
        def call(request: Any, context: grpc.ServicerContext) -> Any:
            began_at = time.perf_counter()
            try:
                return behaviour(request, context)
            finally:
                self.latency.observe(*method, seconds=time.perf_counter() - began_at)
                self.note(method, _code(context))

        return call

    def _stream(self, behaviour: Callable[..., Any], method: tuple[str, str]) -> Callable[..., Any]:
        def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                yield from behaviour(request, context)
            finally:
                self.note(method, _code(context))

        return call

    def note(self, method: tuple[str, str], code: str) -> None:
        """Count a call that has ended."""
        codes = self._codes[method]
        if code not in codes and len(codes) >= MAX_CODES - 1:
            code = _OTHER
        codes.add(code)
        self.handled.add(*method, code)


def _code(context: grpc.ServicerContext) -> str:
    """Return the name of the status that a call ends with."""
    code = context.code()  # type: ignore[attr-defined]
    if code is not None:
        return str(code.name)
    return "OK" if context.is_active() else "CANCELLED"  # the caller has gone, or waits no longer
