"""The routes and functions that an app defines. `potassium.py` collects them, the worker's adapter runs them."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional

from banana_worker.run.loaded_app import RepeatOptions, repeat_options

from .hooks import checked_url


class Endpoint(NamedTuple):
    """One route and its function."""

    kind: str
    input: str
    """`json`: the route takes JSON only. `any`: any body, read by its content type."""
    run: Callable[..., Any]
    forms: bool = False
    text: bool = False
    legacy: bool = False
    """A handler of Potassium up to 0.0.4: JSON in, JSON out."""
    batch: bool = False
    """`run` takes a list of requests, and returns one of answers."""
    webhook: Optional[str] = None
    repeat: RepeatOptions = RepeatOptions()
    schema: Any = None
    """The type of the input, such as a model of pydantic; None: any."""
    answer: Any = None
    """The type of the answer."""


class Definition:
    """The routes and functions that an app has defined so far."""

    def __init__(self) -> None:
        self.endpoints: Dict[str, Endpoint] = {}
        self.init: Optional[Callable[..., Any]] = None
        self.context: Any = {}
        self.has_context = False
        """`set_cache` was called: `init` need not return anything."""
        self.result_webhook: Optional[str] = None


def declared_endpoint(
    kind: str,
    path: str,
    raw: bool = False,
    forms: bool = False,
    text: bool = False,
    batch: bool = False,
    result_webhook: Optional[str] = None,
    repeatable: Optional[bool] = None,
    attempts: Optional[int] = None,
    input: Any = None,
    output: Any = None,
) -> Endpoint:
    """A route whose function is not given yet. Raises TypeError or ValueError if an option is not valid."""

    def missing(*_: object) -> None:
        raise RuntimeError(f"the route {path} was declared without a function")

    where = f"{kind}({path!r})"
    for name, value in {"raw": raw, "forms": forms, "text": text, "batch": batch}.items():
        if not isinstance(value, bool):
            raise TypeError(f"{where}: {name} must be True or False")
    if batch and kind != "handler":
        raise TypeError(f"{where}: only a handler can take calls in a batch")
    for name, kind_of_value in {"input": input, "output": output}.items():
        if kind_of_value is not None and not isinstance(kind_of_value, type):
            raise TypeError(f"{where}: {name} must be a type, such as a model of pydantic")
    body = "any" if raw or forms or text else "json"
    webhook = None if result_webhook is None else checked_url(result_webhook)
    repeat = repeat_options(repeatable, attempts, where)
    is_legacy = False
    return Endpoint(kind, body, missing, forms, text, is_legacy, batch, webhook, repeat, input, output)
