"""What can be told of an app's function before it is called. `inspect` would know it too, and takes longer to load than all of this worker."""

from __future__ import annotations

from typing import Any, Callable

# Flags of a code object, as `inspect` names them.
_CO_VARARGS = 0x04
_CO_COROUTINE = 0x80


def is_coroutine_function(func: Callable[..., Any]) -> bool:
    """Whether a function, a method, an object that is called or a partial of one is an `async def`."""
    code = getattr(_plain(func), "__code__", None)
    return code is not None and bool(code.co_flags & _CO_COROUTINE)


def takes_argument(func: Callable[..., Any]) -> bool:
    """Whether a function must be given a positional argument, or takes any number of them."""
    plain = _plain(func)
    code = getattr(plain, "__code__", None)
    if code is None or plain is not func:
        return _signature_takes_argument(func)
    wanted = code.co_argcount - len(func.__defaults__ or ())  # type: ignore[attr-defined]
    return wanted > 0 or bool(code.co_flags & _CO_VARARGS)


def _plain(func: Any) -> Any:
    """The function behind methods, partials and objects that are called."""
    while True:
        inner = getattr(func, "__func__", None) or (getattr(func, "func", None) if hasattr(func, "keywords") else None)
        if inner is None:
            break
        func = inner
    if hasattr(func, "__code__"):
        return func
    call = getattr(type(func), "__call__", None)
    return call if hasattr(call, "__code__") else func


def _signature_takes_argument(func: Callable[..., Any]) -> bool:
    import inspect

    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return False  # a function of C that does not say what it takes
    return any(
        each.kind is each.VAR_POSITIONAL
        or (each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) and each.default is each.empty)
        for each in parameters
    )
