"""The names beside the app itself that a module may have, in every way of writing an app: `config` and `shutdown`."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Dict, Mapping

from banana_worker.adapters.coroutine_functions import is_generator_function
from banana_worker.failures.sentences import kind_of
from banana_worker.protocol.tables import MAX_CONCURRENCY, MODEL_OPTIONS
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.run.repeat_options import repeat_options

# Options that the worker itself reads.
APP_OPTIONS = ("forms", "text", "repeatable", "attempts", "concurrency")


class ModuleApp(LoadedApp):
    """An app in a module, as far as every way of writing one is the same."""

    # Options that the worker reads; the front gets the others.
    own_options = ("repeatable", "attempts", "concurrency")

    def __init__(self, module: ModuleType) -> None:
        """@raises TypeError for a wrong value in `config`"""
        self._module = module
        self.config = config_of(module)
        self.repeat = repeat_options(self.config.get("repeatable"), self.config.get("attempts"), "`config`")
        self.repeatable = self.repeat.repeatable is True
        self.model_options = {name: value for name, value in self.config.items() if name not in self.own_options}

    @property
    def has_shutdown(self) -> bool:
        return callable(getattr(self._module, "shutdown", None))

    def shutdown(self) -> Any:
        return self._module.shutdown() if self.has_shutdown else None


def config_of(module: ModuleType) -> Dict[str, Any]:
    """The options in the `config` of the module, under their names in camel case; names such as `run_timeout` are
    accepted too. Empty if `config` is the app's own object: not a dict, or without any of our options."""
    config = getattr(module, "config", None)
    if not isinstance(config, dict) or not all(isinstance(name, str) for name in config):
        return {}
    options = {_camel_case(name): value for name, value in config.items()}
    is_ours = any(name in MODEL_OPTIONS or name in APP_OPTIONS for name in options)
    return options if is_ours else {}


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)


def concurrency_of(config: Mapping[str, Any]) -> int:
    """Calls that the app takes at the same time. @raises TypeError"""
    given = config.get("concurrency", 1)
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MAX_CONCURRENCY:
        return given
    raise TypeError("`config`: concurrency must be a whole number from 1 to %d" % MAX_CONCURRENCY)


def assert_no_generator(init: Any) -> None:
    """Checks an app's `init`. @raises TypeError if its body would not run when it is called"""
    if is_generator_function(init):
        name = getattr(init, "__name__", "init")
        cure = "so its body would not run. Remove the `yield`"
        raise TypeError(f"`{name}` is a generator because it has a `yield`, {cure}")


def function_or_none(module: ModuleType, name: str) -> Any:
    """The function of this name. @raises TypeError if the name is there and cannot be called"""
    value = getattr(module, name, None)
    if value is not None and not callable(value):
        raise TypeError(f"`{name}` is {kind_of(value)}; make it a function or remove it")
    return value
