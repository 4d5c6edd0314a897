"""A Potassium app as the worker runs it: its routes, its init, the arguments of its functions, and what they may return. An
exception that is returned stays as it is: the call ends with it."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, List, Optional

from banana_worker.adapters.exports import ModuleApp, assert_no_generator, function_or_none
from banana_worker.adapters.functions import assert_takes, is_coroutine_function, parameters_of, then
from banana_worker.failures.sentences import kind_of
from banana_worker.formats.read_input import InputWishes
from banana_worker.formats.reply import JsonBody, Reply, ReplyHead
from banana_worker.protocol.messages import Route
from banana_worker.reply.response import JSON_TYPE, Response, reply_of_response
from banana_worker.run.batch_entries import only_entry
from banana_worker.run.loaded_app import ANY_BATCH, RepeatOptions, attempts_of
from banana_worker.run.schemas import Schemas, declared_schemas
from potassium.types import Request
from potassium.websocket import AsyncWebSocket, WebSocket

if TYPE_CHECKING:
    from banana_worker.run.call_context import CallContext, InitContext
    from potassium.definition import Definition, Endpoint


class PotassiumApp(ModuleApp):
    def __init__(self, app: Any, module: ModuleType) -> None:
        self.definition: Definition = app.definition
        self.init_function = self.definition.init
        for endpoint in self.definition.endpoints.values():
            _check_function(endpoint)
        super().__init__(module)
        routes = [_route_of(self.definition, path, end, self.repeat) for path, end in self.definition.endpoints.items()]
        self._schemas = {
            path: declared_schemas(end.schema, end.answer) for path, end in self.definition.endpoints.items()
        }
        typed = "a route has a type" if any(self._schemas.values()) else ""
        self.description = self._described(routes, typed)._replace(api="potassium")
        function_or_none(module, "shutdown")
        assert_no_generator(self.definition.init)

    def function(self, route: str) -> Any:
        return self._endpoint(route).run

    def wishes(self, route: str) -> InputWishes:
        endpoint = self._endpoint(route)
        return InputWishes(forms=endpoint.forms, text=endpoint.text)

    def schemas(self, route: str) -> Optional[Schemas]:
        return self._schemas[route]

    def init(self, ctx: InitContext) -> Any:
        func = self.definition.init
        if func is None:
            return None
        return then(_call_init(func, ctx), self._take_context)

    def handle(self, route: str, input: Any, ctx: CallContext) -> Any:
        endpoint = self._endpoint(route)
        context = self.definition.context
        if endpoint.kind == "websocket":
            return endpoint.run(context, _websocket_request(endpoint, input, ctx))
        if endpoint.legacy:
            return then(endpoint.run(context, input), _json_of)
        if endpoint.batch:
            returned = endpoint.run(context, [_request(input, ctx)])
            return then(returned, lambda entries: _reply_of_entry(only_entry(entries)))
        to_reply = _reply_of if endpoint.kind == "handler" else _json_of
        return then(endpoint.run(context, _request(input, ctx)), to_reply)

    def handle_batch(self, route: str, inputs: List[Any], ctxs: List[CallContext]) -> Any:
        requests = [_request(input, ctx) for input, ctx in zip(inputs, ctxs)]
        return then(self._endpoint(route).run(self.definition.context, requests), _replies_of)

    def _endpoint(self, route: str) -> Endpoint:
        """The front calls only routes that it knows from `loaded`."""
        return self.definition.endpoints[route]

    def _take_context(self, returned: Any) -> None:
        if isinstance(returned, dict):
            self.definition.context = returned
        elif returned is not None or not self.definition.has_context:
            raise TypeError(
                "Potassium init() must return a dictionary, or call set_cache() and return nothing; "
                f"it returned {kind_of(returned)}"
            )


def _check_function(endpoint: Endpoint) -> None:
    """@raises WrongFunction if it cannot be called with a context and a request"""
    second = "json_in" if endpoint.legacy else "requests" if endpoint.batch else "request"
    assert_takes(endpoint.run, getattr(endpoint.run, "__name__", "handler"), ("context", second))


def _call_init(init: Any, ctx: InitContext) -> Any:
    """Passes the worker's number to a parameter without a default, and `ctx` to a second one or to one of that name."""
    parameters = parameters_of(init)
    if parameters is None:
        return init()
    given: List[Any] = []
    left: List[Any] = [ctx, ctx.worker.index]
    for place, name in enumerate(parameters.positional):
        if name != "ctx" and not (place < parameters.required and left):
            break
        given.append(ctx if name == "ctx" else left.pop())
    if parameters.takes_more and not given:
        given = [ctx.worker.index]
    names = [*parameters.keyword_only, *parameters.positional[len(given) :]]
    return init(*given, ctx=ctx) if "ctx" in names else init(*given)


def _route_of(definition: Definition, path: str, endpoint: Endpoint, config: RepeatOptions) -> Route:
    webhook = endpoint.webhook or (definition.result_webhook if endpoint.kind == "handler" else None) or ""
    attempts = attempts_of(endpoint.repeat, config)
    return Route(path, endpoint.kind, endpoint.input, webhook, ANY_BATCH if endpoint.batch else 1, attempts)


def _request(input: Any, ctx: CallContext) -> Any:
    return Request(json=input, ctx=ctx)


def _websocket_request(endpoint: Endpoint, socket: Any, ctx: CallContext) -> Any:
    ws = AsyncWebSocket(socket) if is_coroutine_function(endpoint.run) else WebSocket(socket)
    return Request(ws=ws, ctx=ctx)


_JSON_HEAD = ReplyHead(200, JSON_TYPE)


def _replies_of(returned: Any) -> Any:
    """A value that is not a list is left as it is: the batch runner reports it."""
    return [_reply_of_entry(entry) for entry in returned] if isinstance(returned, (list, tuple)) else returned


def _reply_of_entry(entry: Any) -> Any:
    """An entry that is not a valid answer fails its own call."""
    try:
        return then(entry, _reply_of)
    except Exception as error:
        return error


def _reply_of(output: Any) -> Any:
    """A handler must return a Response, which becomes a reply here: 0.3 us sooner than where any output is looked at."""
    if isinstance(output, Response):
        return reply_of_response(output)
    if isinstance(output, BaseException):
        return output
    given = f"the handler returned {kind_of(output)}; write `return Response(json=..., status=200)`"
    raise TypeError(f"Potassium Response object not returned: {given}")


def _json_of(output: Any) -> Any:
    """A background function, and a handler of Potassium up to 0.0.4, may return any JSON value, a list, a text or None
    included."""
    if isinstance(output, BaseException):
        return output
    if hasattr(output, "__next__") or hasattr(output, "__anext__"):
        raise TypeError("a generator was returned as JSON; return it in a Response to stream it")
    return Reply(_JSON_HEAD, JsonBody(output))
