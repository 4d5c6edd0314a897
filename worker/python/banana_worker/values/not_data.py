"""Errors for values that are not data, with advice on the value to return instead."""

from __future__ import annotations

import types
from typing import Tuple

from banana_worker.failures.sentences import with_article


class NotData(TypeError):
    """A value that no answer can hold. Its text goes on after the place of the value: `is a Foo; ...`."""


def not_data(value: object) -> NotData:
    """Names the type of the value, and the value to return instead."""
    kind, instead = _describe(value)
    return NotData(f"is {kind}; {instead}")


def _describe(value: object) -> Tuple[str, str]:
    if isinstance(value, type):
        return f"the class {value.__name__}", "return an instance, as a dict"
    if isinstance(value, types.ModuleType):
        return f"the module {value.__name__}", "return a value of it"
    for kinds, name, instead in _KINDS:
        if isinstance(value, kinds):
            return name, instead
    kind = with_article(type(value).__name__)
    if hasattr(type(value), "__await__"):
        return kind, "await it"
    if hasattr(type(value), "__next__"):
        return kind, "return list(...) of it"
    return kind, "return what it holds as a dict, a list, text or a number"


_KINDS = (
    (types.CoroutineType, "a coroutine", "await it"),
    (types.GeneratorType, "a generator", "return list(...) of it"),
    (types.AsyncGeneratorType, "an async generator", "return a list of what it yields"),
    (
        (types.FunctionType, types.BuiltinFunctionType, types.MethodType),
        "a function",
        "call it, or leave it out",
    ),
    (BaseException, "an exception", "return its text, or raise it"),
    (complex, "a complex number", "return its real and its imag"),
)
