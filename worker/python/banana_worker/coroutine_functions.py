"""What is an `async def`, told without the module `inspect`, which takes longer to load than most of this worker."""

from __future__ import annotations

from typing import Any

# `CO_COROUTINE` of the module `inspect`.
_IS_COROUTINE = 0x80


def is_coroutine_function(function: Any) -> bool:
    """Whether a function, a method, a partial of one or an object that is called is an `async def`."""
    while True:
        inner = getattr(function, "__func__", None) or getattr(function, "func", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code is not None and bool(code.co_flags & _IS_COROUTINE)
