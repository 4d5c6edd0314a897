"""Finds out about a function of the app which of the worker's arguments it wants, and whether it is a coroutine or a
generator. The module `inspect` takes longer to load than most of this worker, so it is asked only where it must be."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from banana_worker.failures.app_function import WrongFunction
from banana_worker.standard_modules import import_standard


class Parameters(NamedTuple):
    # Names of those that may be given by position; the first ones have no default.
    positional: List[str]
    required: int
    takes_more: bool
    keyword_only: List[str]
    takes_names: bool


def parameters_of(function: Callable[..., Any]) -> Optional[Parameters]:
    """The parameters of a function or another callable; None if Python does not know them. A wrapper that passes on
    its arguments has those of the wrapped function: by name only, if it passes on names only, and by position
    only, if it passes on no names."""
    outer: Any = function
    names_pass = True
    while True:
        own = _own_parameters_of(outer)
        passes_on = own is None or own.takes_more or own.takes_names
        if not passes_on or not hasattr(outer, "__wrapped__"):
            break
        if own is not None and not own.takes_more:
            own = _and_names(own, parameters_of(outer.__wrapped__))
            break
        names_pass = names_pass and (own is None or own.takes_names)
        outer = outer.__wrapped__
    return own if own is None or names_pass else own._replace(keyword_only=[])


def _and_names(own: Parameters, wrapped: Optional[Parameters]) -> Parameters:
    if wrapped is None:
        return own
    names = [name for name in (*wrapped.keyword_only, *wrapped.positional) if name not in own.positional]
    return own._replace(keyword_only=[*own.keyword_only, *names])


def assert_takes(function: Callable[..., Any], name: str, arguments: Sequence[str]) -> None:
    """@raises WrongFunction if the function cannot be called with these arguments; not if Python does not know"""
    count = len(arguments)
    problem = _too_few(function, count) or _too_many(function, count, str(count))
    if problem is not None:
        raise WrongFunction(function, f"`{name}` {problem}: write `def {name}({', '.join(arguments)})`")


def _too_few(function: Callable[..., Any], given: int) -> Optional[str]:
    own = _own_parameters_of(function)
    if own is None or own.takes_more or len(own.positional) >= given:
        return None
    return f"takes {_arguments(len(own.positional))}, and gets {given}"


def _too_many(function: Callable[..., Any], most: int, given: str) -> Optional[str]:
    own = _own_parameters_of(function)
    needed = 0 if own is None else own.required
    return f"needs {_arguments(needed)}, and gets {given}" if needed > most else None


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _own_parameters_of(function: Callable[..., Any]) -> Optional[Parameters]:
    """The parameters of the function itself, which may be a wrapper with more or fewer than the wrapped function."""
    if isinstance(function, types.FunctionType):
        return _of_code(function)
    inspect = import_standard("inspect")  # 8 ms that most apps do not need
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = sum(one.default is one.empty for one in positional)
    more = any(one.kind is one.VAR_POSITIONAL for one in given)
    keywords = [one.name for one in given if one.kind is one.KEYWORD_ONLY]
    names = any(one.kind is one.VAR_KEYWORD for one in given)
    return Parameters([one.name for one in positional], required, more, keywords, names)


def _of_code(function: types.FunctionType) -> Parameters:
    code = function.__code__
    names, count, flags = code.co_varnames, code.co_argcount, code.co_flags
    required = count - len(function.__defaults__ or ())
    keywords = list(names[count : count + code.co_kwonlyargcount])
    return Parameters(list(names[:count]), required, bool(flags & _TAKES_MORE), keywords, bool(flags & _TAKES_NAMES))


# `CO_VARARGS` and `CO_VARKEYWORDS` of the module `inspect`.
_TAKES_MORE, _TAKES_NAMES = 0x04, 0x08

_NAMES = ("ctx", "context")


def with_context(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    """`function`, to be called with `before` arguments and a context. It gets the context if it has a further
    parameter that has no default or is named `ctx` or `context`. @raises TypeError if it takes fewer arguments or
    needs more"""
    parameters = parameters_of(function)
    if parameters is None:
        return _without_context(function, before)
    keyword = next((name for name in parameters.keyword_only if name in _NAMES), None)
    if keyword is not None:
        return lambda *given: function(*given[:before], **{keyword: given[before]})
    problem = _too_few(function, before) or _too_many(function, before + 1, f"{before} and a context")
    if problem is not None:
        raise TypeError(problem)
    is_named = len(parameters.positional) > before and parameters.positional[before] in _NAMES
    if is_named or parameters.required > before:
        return function
    return _without_context(function, before)


def _without_context(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    if before == 1:
        return lambda input, context: function(input)
    return lambda *given: function(*given[:before])


# `CO_COROUTINE`, `CO_ASYNC_GENERATOR`, and `CO_GENERATOR` with it, of the module `inspect`.
_IS_COROUTINE = 0x80
_IS_ASYNC_GENERATOR = 0x200
_IS_GENERATOR = 0x20 | _IS_ASYNC_GENERATOR


def is_coroutine_function(function: Any) -> bool:
    """Whether a function, a method, a partial of one or a callable object is an `async def`."""
    return bool(_flags_of(function) & _IS_COROUTINE)


def runs_in_event_loop(function: Any) -> bool:
    """As `is_coroutine_function`, or an `async def` with a `yield`: its body lets others go on where it waits."""
    return bool(_flags_of(function) & (_IS_COROUTINE | _IS_ASYNC_GENERATOR))


def is_generator_function(function: Any) -> bool:
    """As `is_coroutine_function`, for a body with a `yield`, async or not."""
    return bool(_flags_of(function) & _IS_GENERATOR)


def then(output: Any, step: Callable[[Any], Any]) -> Any:
    """The output of a function after one more step; for an awaitable, an awaitable of that."""
    if getattr(type(output), "__await__", None) is None:
        return step(output)
    return _awaited(output, step)


async def _awaited(output: Any, step: Callable[[Any], Any]) -> Any:
    return step(await output)


def _flags_of(function: Any) -> int:
    """The flags of the code; 0 if Python does not know the code."""
    while isinstance(function, (types.MethodType, functools.partial)):
        # Compares types only: a mock has an attribute of every name, and that is a mock again.
        function = function.__func__ if isinstance(function, types.MethodType) else function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return 0 if code is None else int(code.co_flags)
