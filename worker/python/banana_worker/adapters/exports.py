"""The names beside the app itself that a module may have, in every way of writing an app: `config`, `shutdown`, `task`,
`token_input` and `signature`."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Dict, List, Mapping, Optional, Tuple

from banana_worker.adapters.functions import is_generator_function
from banana_worker.failures.sentences import kind_of
from banana_worker.failures.thrown import is_whole
from banana_worker.protocol.tables import MAX_CONCURRENCY, MODEL_OPTIONS, TASKS
from banana_worker.protocol.messages import Route
from banana_worker.run.loaded_app import Description, LoadedApp, repeat_options
from banana_worker.values.tensor import DATATYPES, MAX_DIMENSIONS, Signature, TensorSpec, shown


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

    def _described(self, routes: List[Route], typed: str) -> Description:
        """`typed`: says that the app declares a type; empty if it declares none. @raises TypeError"""
        signature = signature_of(self._module)
        if typed and signature is not None:
            raise TypeError(_BESIDE_SIGNATURE % typed)
        return Description(
            routes,
            self.model_options,
            signature=signature,
            concurrency=concurrency_of(self.config),
            task=task_of(self._module),
            token_input=getattr(self._module, "token_input", None) is True,
        )

    @property
    def has_shutdown(self) -> bool:
        return callable(getattr(self._module, "shutdown", None))

    def shutdown(self) -> Any:
        return self._module.shutdown() if self.has_shutdown else None


_BESIDE_SIGNATURE = "%s beside a `signature`; keep one of them: a signature describes tensors, a type JSON"


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
    if is_whole(given, 1, MAX_CONCURRENCY):
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


def task_of(module: ModuleType) -> Optional[str]:
    """None for an app without one: any other value of that name is the app's own. @raises TypeError for a task that is
    written wrong"""
    given: object = getattr(module, "task", None)
    if not isinstance(given, str) or not given.lower().startswith(tuple(task[:5] for task in TASKS)):
        return None
    if given in TASKS:
        return given
    raise TypeError(f"`task` is {shown(given)}; there are {', '.join(TASKS)}")


def signature_of(module: ModuleType) -> Optional[Signature]:
    """None for an app without one: a name `signature` that is no dict with `inputs` or `outputs` is the app's own, such
    as the function of `inspect`. @raises TypeError that names the tensor if it is no signature"""
    given: Any = getattr(module, "signature", None)
    if not isinstance(given, dict) or not ("inputs" in given or "outputs" in given):
        return None
    return Signature(_specs_of(given.get("inputs"), "inputs"), _specs_of(given.get("outputs"), "outputs"))


def _specs_of(given: Any, key: str) -> Tuple[TensorSpec, ...]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f'`signature`: "{key}" must be a list, not {kind_of(given)}')
    specs: List[TensorSpec] = []
    for i, item in enumerate(given):
        spec = _spec_of(item, f'"{key}"[{i}]')
        if any(other.name == spec.name for other in specs):
            raise TypeError(f'`signature`: "{key}" has {shown(spec.name)} twice')
        specs.append(spec)
    return tuple(specs)


def _spec_of(given: Any, place: str) -> TensorSpec:
    if not isinstance(given, dict):
        raise TypeError(f"`signature`: {place} must be a dict with name, datatype and shape, not {kind_of(given)}")
    name, datatype, shape = (given.get(field) for field in ("name", "datatype", "shape"))
    if not isinstance(name, str) or not name:
        raise TypeError(f"`signature`: the name of {place} must be text, not {shown(name)}")
    if datatype not in DATATYPES:
        raise TypeError(f"`signature`: the datatype of {place} is {shown(datatype)}; there are {', '.join(DATATYPES)}")
    if not isinstance(shape, (list, tuple)) or len(shape) > MAX_DIMENSIONS or not all(map(_is_size, shape)):
        text = f"the shape of {place} must be a list of sizes, with -1 for a free one, not {shown(shape)}"
        raise TypeError(f"`signature`: {text}")
    return TensorSpec(name, str(datatype), tuple(shape))


def _is_size(size: object) -> bool:
    return type(size) is int and size >= -1
