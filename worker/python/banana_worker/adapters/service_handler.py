"""Finds the handler of a custom service in a module."""

from __future__ import annotations

import inspect
from types import FunctionType, ModuleType
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from banana_worker.adapters.exports import assert_no_generator
from banana_worker.adapters.functions import assert_takes
from banana_worker.failures.app_function import WrongFunction
from banana_worker.failures.thrown import is_a

USUAL_NAME = "handle"


class Handler(NamedTuple):
    # `function`: its first call gets None, which loads the model. `class`: it is made without arguments, and
    # initialized. `old`: a class of archives of version 0.x, which is made with the model's name, folder, manifest and
    # GPU.
    style: str
    entry: Callable[..., Any]


def find_handler(module: ModuleType, name: str, is_old: bool = False) -> Optional[Handler]:
    """The function or the class of this name, else the only class of the module's own that has a `handle` method.

    An empty name means `handle`. `is_old`: the model comes from an archive of version 0.x, whose services are
    classes of another form: the first of them by its name. None if there is none.
    """
    old = _first_old_class(module, name) if is_old else None
    if old is not None:
        return Handler("old", old)
    value: Any = getattr(module, name or USUAL_NAME, None)
    if _has_handle(value):
        return Handler("class", value)
    if callable(value) and not inspect.isclass(value):
        return Handler("function", value)
    classes = service_classes(module)
    return Handler("class", classes[0]) if len(classes) == 1 else None


def assert_callable(handler: Handler) -> None:
    """Checks plain functions and methods; any other callable raises when it is called.

    @raises WrongFunction if the server cannot call one, or its body would not run
    """
    if handler.style == "function":
        name = getattr(handler.entry, "__name__", USUAL_NAME)
        _assert_takes(handler.entry, name, ("data", "context"))
        return
    _assert_method_takes(handler.entry, USUAL_NAME, ("data", "context"))
    initialize = _assert_method_takes(handler.entry, "initialize", ("context",))
    try:
        assert_no_generator(initialize)
    except TypeError as wrong:
        raise WrongFunction(initialize, str(wrong)) from None


def _assert_method_takes(service: Any, name: str, parameters: Sequence[str]) -> Any:
    """Returns the function that the class has under this name; None if it has none."""
    found = inspect.getattr_static(service, name, None)
    if isinstance(found, staticmethod):
        return _assert_takes(found.__func__, name, parameters)
    if isinstance(found, classmethod):
        return _assert_takes(found.__func__, name, ("cls", *parameters))
    return _assert_takes(found, name, ("self", *parameters))


def _assert_takes(function: Any, name: str, parameters: Sequence[str]) -> Any:
    if not isinstance(function, FunctionType):
        return None
    assert_takes(function, name, parameters)
    return function


def service_classes(module: ModuleType) -> List[type]:
    """The classes with a `handle` method that the module defines, without its imports, by their names."""
    return [one for one in _own_classes(module) if _has_handle(one)]


def _own_classes(module: ModuleType) -> List[type]:
    own = (one for one in vars(module).values() if is_a(one, type) and one.__module__ == module.__name__)
    return sorted(dict.fromkeys(own), key=lambda one: one.__name__)


def _has_handle(value: object) -> bool:
    return inspect.isclass(value) and callable(getattr(value, USUAL_NAME, None))


def _first_old_class(module: ModuleType, name: str) -> Optional[type]:
    from mms.model_service.model_service import ModelService

    named: Any = getattr(module, name, None) if name else None
    if inspect.isclass(named) and issubclass(named, ModelService):
        return named
    classes = [one for one in _own_classes(module) if issubclass(one, ModelService)]
    return classes[0] if classes else None
