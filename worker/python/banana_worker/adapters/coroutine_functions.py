"""Recognises coroutine and generator functions, and what they return, without the module `inspect`, which takes longer
to load than most of this worker."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

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
