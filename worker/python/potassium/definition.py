"""The routes and functions that an app defines. `potassium.py` collects them, the worker's adapter runs them."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional

from banana_worker.run.repeat_options import RepeatOptions, repeat_options

from .webhook_url import checked_url

HANDLER = "handler"
BACKGROUND = "background"
WEBSOCKET = "websocket"


class Endpoint(NamedTuple):
    """One route and its function."""

    kind: str
    input: str
    """`json`: the route takes JSON only. `any`: any body, read by its content type."""
    forms: bool
    text: bool
    legacy: bool
    """A handler of Potassium up to 0.0.4: JSON in, JSON out."""
    batch: bool
    """`run` takes a list of requests, and returns one of answers."""
    webhook: Optional[str]
    run: Callable[..., Any]
    repeat: RepeatOptions = RepeatOptions()


class RouteOptions(NamedTuple):
    """The options of a route beside its path."""

    raw: bool = False
    forms: bool = False
    text: bool = False
    batch: bool = False
    result_webhook: Optional[str] = None
    repeatable: Optional[bool] = None
    attempts: Optional[int] = None


class Definition:
    """The routes and functions that an app has defined so far."""

    def __init__(self) -> None:
        self.endpoints: Dict[str, Endpoint] = {}
        self.init: Optional[Callable[..., Any]] = None
        self.context: Any = {}
        self.has_context = False
        """`set_cache` was called: `init` need not return anything."""
        self.result_webhook: Optional[str] = None


def endpoint_of(kind: str, path: str, options: RouteOptions, run: Callable[..., Any]) -> Endpoint:
    """Raises TypeError or ValueError if an option is not valid."""
    where = f"{kind}({path!r})"
    for name in ("raw", "forms", "text", "batch"):
        if not isinstance(getattr(options, name), bool):
            raise TypeError(f"{where}: {name} must be True or False")
    if options.batch and kind != HANDLER:
        raise TypeError(f"{where}: only a handler can take calls in a batch")
    input = "any" if options.raw or options.forms or options.text else "json"
    webhook = None if options.result_webhook is None else checked_url(options.result_webhook)
    repeat = repeat_options(options.repeatable, options.attempts, where)
    return Endpoint(kind, input, options.forms, options.text, False, options.batch, webhook, run, repeat)


def legacy_endpoint(run: Callable[..., Any]) -> Endpoint:
    """The one handler of an app of Potassium up to 0.0.4, which takes any content type."""
    return Endpoint(HANDLER, "any", False, False, True, False, None, run)


def missing(path: str) -> Callable[..., Any]:
    """Stands in for a route's function until it is given."""

    def run(*_: object) -> None:
        raise RuntimeError(f"the route {path} was declared without a function")

    return run
