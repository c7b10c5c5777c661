"""One trace from a client's call through the job to its executor, by OpenTelemetry.

Nothing of OpenTelemetry is imported unless MEDIAPLANE_TRACES is set.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import grpc

from mediaplane.errors import UnusableSettings

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

SETTING = "MEDIAPLANE_TRACES"
_TRACE_PARENT = "traceparent"


@cache
def is_on() -> bool:
    """Tell whether spans are asked for."""
    return os.environ.get(SETTING, "").strip().lower() in ("1", "true", "yes", "on")


@contextmanager
def span(name: str, parent: str | None = None, **attributes: Any) -> Iterator[None]:
    """Make a span of what is done here, below a W3C trace parent or the span that is current."""
    if not is_on():
        yield
        return
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - see above

    carrier = {_TRACE_PARENT: parent} if parent else {}
    above = tracecontext.TraceContextTextMapPropagator().extract(carrier)
    with tracer().start_as_current_span(name, context=above, attributes=attributes):
        yield


def current() -> str | None:
    """Return the W3C trace parent of the current span; None when there is none."""
    if not is_on():
        return None
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - see above

    carrier: dict[str, str] = {}
    tracecontext.TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(_TRACE_PARENT)


def parent_of(context: grpc.ServicerContext) -> str | None:
    """Return the trace parent that a caller has sent along."""
    if not is_on():
        return None
    for key, value in context.invocation_metadata():
        if key == _TRACE_PARENT:
            return str(value)
    return None


def carried(channel: grpc.Channel) -> grpc.Channel:
    """Return a channel whose calls are spans, and carry them along."""
    return grpc.intercept_channel(channel, _Carrier()) if is_on() else channel


class _Carrier(grpc.UnaryUnaryClientInterceptor):
    """Sends the trace parent with every call that has one answer."""

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        with span(str(details.method)):
            metadata = [*(details.metadata or ()), (_TRACE_PARENT, current())]
            return continuation(details._replace(metadata=metadata), request)


@cache
def tracer(service: str = "mediaplane") -> "Tracer":
    """Return what makes spans, set up by the OTEL_* variables; the first to ask names itself."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 - see above
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        exporter = _exporter(os.environ.get("OTEL_TRACES_EXPORTER", "otlp"))
    except ImportError as error:
        raise UnusableSettings(
            f"{SETTING} is set, but {error.name} is not installed; install mediaplane[otel]."
        ) from None
    name = os.environ.get("OTEL_SERVICE_NAME", service)
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return trace.get_tracer("mediaplane")


def _exporter(name: str) -> Any:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415

        return ConsoleSpanExporter()
    if name != "otlp":
        raise UnusableSettings(f"OTEL_TRACES_EXPORTER is {name!r}; it must be otlp or console.")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )

    return OTLPSpanExporter()
