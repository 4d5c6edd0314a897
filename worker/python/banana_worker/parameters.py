"""Which of the arguments that the worker has to give a function of the app wants."""

from __future__ import annotations

import types
from typing import Any, Callable, List, NamedTuple, Optional

from banana_worker.standard_modules import import_standard


class Parameter(NamedTuple):
    name: str
    is_required: bool


class Parameters(NamedTuple):
    # Those that may be given by their place.
    positional: List[Parameter]
    takes_more: bool
    keyword_only: List[str]


def parameters_of(function: Callable[..., Any]) -> Optional[Parameters]:
    """Those of a function, of what it wraps, or of anything else that can be called; None if Python does not tell."""
    wrapped: Any = function
    while hasattr(wrapped, "__wrapped__"):
        wrapped = wrapped.__wrapped__
    function = wrapped
    if isinstance(function, types.FunctionType):
        return _of_code(function)
    inspect = import_standard("inspect")  # 8 ms that most apps do not need
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = [
        Parameter(one.name, one.default is one.empty)
        for one in given
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    more = any(one.kind is one.VAR_POSITIONAL for one in given)
    return Parameters(positional, more, [one.name for one in given if one.kind is one.KEYWORD_ONLY])


def _of_code(function: types.FunctionType) -> Parameters:
    code = function.__code__
    names = code.co_varnames
    required = code.co_argcount - len(function.__defaults__ or ())
    positional = [Parameter(name, place < required) for place, name in enumerate(names[: code.co_argcount])]
    keywords = list(names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    return Parameters(positional, bool(code.co_flags & _TAKES_MORE), keywords)


# `CO_VARARGS` of the module `inspect`.
_TAKES_MORE = 0x04

_NAMES = ("ctx", "context")


def with_context(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    """
    `function`, to be called with `before` arguments and a context, which it gets if it wants one: by a further
    parameter that has no default or is named `ctx` or `context`. @raises TypeError if it takes fewer or needs more
    """
    parameters = parameters_of(function)
    if parameters is None:
        return _without_context(function, before)
    keyword = next((name for name in parameters.keyword_only if name in _NAMES), None)
    if keyword is not None:
        return lambda *given: function(*given[:before], **{keyword: given[before]})
    if len(parameters.positional) < before and not parameters.takes_more:
        raise TypeError(f"takes {len(parameters.positional)} arguments, and gets {before}")
    needed = sum(parameter.is_required for parameter in parameters.positional)
    if needed > before + 1:
        raise TypeError(f"needs {needed} arguments, and gets {before} and a context")
    if len(parameters.positional) > before:
        parameter = parameters.positional[before]
        if parameter.is_required or parameter.name in _NAMES:
            return function
    return _without_context(function, before)


def _without_context(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    if before == 1:
        return lambda input, context: function(input)
    return lambda *given: function(*given[:before])
