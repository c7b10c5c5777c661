"""What happens around every call of both planes: a place, a caller, a rule, and a status."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import grpc
from google.rpc import code_pb2, status_pb2
from grpc_status import rpc_status

from mediaplane import authorization, traces
from mediaplane.authentication import authenticate
from mediaplane.errors import CallerError, Overloaded
from mediaplane.identity import Caller, identify
from mediaplane.places import Places
from mediaplane.protocol import audit
from mediaplane.protocol.audit import Entry
from mediaplane.protocol.values import Peer
from mediaplane.statuses import status_of
from mediaplane.tokens import Tokens

# Returns the request of a call, or its stream of requests.
Receive = Callable[[Any, grpc.ServicerContext], Any]
# Takes note of a call that might have changed something and was refused, with its code.
NoteRefusal = Callable[[Entry, str], None]

_HEALTH = "/grpc.health.v1.Health/"
_OURS = f"/{authorization.PACKAGE}."
# How a handler is asked for and made, by whether requests and responses are streams.
KINDS: dict[tuple[bool, bool], tuple[str, Callable[..., Any]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class AtOnce(grpc.ServerInterceptor):
    """Has every call answered by places that never wait for long; for health checks alone."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wrap the handler of a call."""
        handler = continuation(details)
        return None if handler is None else _answered_at_once(self._places, handler)


class Guard(grpc.ServerInterceptor):
    """Lets a call through to its handler when there is a place for it and a rule allows it."""

    def __init__(
        self,
        places: Places,
        spare: Places,
        tokens: Tokens | None,
        note_refusal: NoteRefusal | None,
    ) -> None:
        self._places = places
        # Answers what must be answered at once, however busy the places are.
        self._spare = spare
        self._tokens = tokens
        self._note_refusal = note_refusal

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wrap the handler of a call. This runs in gRPC's own thread and must not wait."""
        handler = continuation(details)
        if handler is None:
            return None
        if details.method.startswith(_HEALTH):
            return _answered_at_once(self._spare, handler)
        if self._places.are_taken:
            return self._refusal(details.method)
        name, _ = KINDS[handler.request_streaming, handler.response_streaming]
        _, kind = KINDS[True, handler.response_streaming]
        wrap = self._stream if handler.response_streaming else self._call
        return kind(
            wrap(getattr(handler, name), details.method, self._receiver(handler)),
            handler.request_deserializer if handler.request_streaming else None,
            _unless_written(handler.response_serializer),
        )

    def _receiver(self, handler: Any) -> Receive:
        if handler.request_streaming:
            return lambda requests, _context: requests
        return partial(self._places.request, deserialize=handler.request_deserializer)

    def _refusal(self, method: str) -> Any:
        def refuse(_requests: Any, context: grpc.ServicerContext) -> NoReturn:
            error = Overloaded("The server is busy with as many calls as it takes; try again soon.")
            _abort(context, status_of(error, method))

        # As a stream, so that the request is not waited for.
        return grpc.stream_unary_rpc_method_handler(_run_by(self._spare, refuse))

    def _call(
        self, behaviour: Callable[..., Any], method: str, receive: Receive
    ) -> Callable[..., Any]:
        def call(requests: Any, context: grpc.ServicerContext) -> Any:
            entry = None
            try:
                # First: who is not known is not waited for.
                caller = authenticate(context, self._tokens)
                request = receive(requests, context)
                entry = self._entry(caller, method, request)
                self._admit(caller, method)
                with traces.span(method, traces.parent_of(context)):
                    return behaviour(request, context)
            except grpc.RpcError:
                raise  # the call has ended already
            except Exception as error:  # noqa: BLE001 - the one place where every error ends
                status = status_of(error, method)
                if entry and self._note_refusal:
                    self._note_refusal(entry, code_pb2.Code.Name(status.code))
                _abort(context, status)

        return call

    def _stream(
        self, behaviour: Callable[..., Any], method: str, receive: Receive
    ) -> Callable[..., Any]:
        def call(requests: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                caller = authenticate(context, self._tokens)
                self._admit(caller, method)
                for response in behaviour(receive(requests, context), context):
                    if caller.peer is Peer.TOKEN:
                        authenticate(context, self._tokens)  # it may have been revoked meanwhile
                    yield response
            except grpc.RpcError:
                raise  # the call has ended already
            except Exception as error:  # noqa: BLE001 - the one place where every error ends
                _abort(context, status_of(error, method))

        return call

    def _admit(self, caller: Caller, method: str) -> None:
        if method.startswith(_OURS):
            authorization.check(caller, method)
        identify(caller)

    def _entry(self, caller: Caller, method: str, request: Any) -> Entry | None:
        """Begin the audit entry of a call that may change something; no stream does."""
        rule = authorization.RULES.get(method)
        if self._note_refusal is None or rule is None or not rule.changes:
            return None
        entry = Entry(
            caller.name, caller.role, caller.tenant_id, caller.peer, method.removeprefix(_OURS)
        )
        entry.concerns(_named(request))
        audit.begin(entry)
        return entry


def _unless_written(serialize: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return what serializes an answer that is not bytes already, as a page is."""
    return lambda answer: answer if type(answer) is bytes else serialize(answer)


def _answered_at_once(places: Places, handler: Any) -> Any:
    """Return a handler of the same health check that is answered by these places."""
    name, _ = KINDS[False, handler.response_streaming]
    _, kind = KINDS[True, handler.response_streaming]
    behaviour = getattr(handler, name)

    def answer(requests: Any, context: grpc.ServicerContext, *send: Any) -> Any:
        try:
            request = places.request(requests, context, handler.request_deserializer)
        except CallerError as error:
            _abort(context, status_of(error, _HEALTH))
        return behaviour(request, context, *send)

    # A watch may be given what sends its answers, and then holds no thread between them.
    answer.experimental_non_blocking = getattr(  # type: ignore[attr-defined]
        behaviour, "experimental_non_blocking", False
    )
    return kind(_run_by(places, answer), None, handler.response_serializer)


def _run_by(places: Places, behaviour: Callable[..., Any]) -> Callable[..., Any]:
    # Where gRPC looks for a pool other than its own.
    behaviour.experimental_thread_pool = places  # type: ignore[attr-defined]
    return behaviour


def _named(request: Any) -> str:
    """Return the name of what a request is about, wherever it stands."""
    for field in ("name", "parent", "file"):
        if value := getattr(request, field, ""):
            return str(value)
    if value := getattr(request, "schedule_id", ""):
        return f"schedules/{value}"
    for field in ("library", "schedule"):
        if value := getattr(getattr(request, field, None), "name", ""):
            return str(value)
    return ""


def _abort(context: grpc.ServicerContext, status: status_pb2.Status) -> NoReturn:
    context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError("abort_with_status raises")
