"""The Potassium way of writing an app: an instance of `Potassium` in the module, under any name, or served.

`config` and `shutdown` may stand beside it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Dict, Optional, Set

from banana_worker.failures.thrown import is_a
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.standard_modules import import_standard


def from_potassium_app(module: ModuleType, served: Optional[object]) -> Optional[LoadedApp]:
    """Returns None if the module is not a Potassium app. `served`: the app whose `serve` the file called.

    Raises TypeError if it has several and serves none, or if an export beside it has a wrong type.
    """
    app = served if served is not None else _only_app(module)
    if app is None:
        return None
    from banana_worker.adapters.potassium_calls import PotassiumApp

    return PotassiumApp(app, module)


def potassium_class() -> Optional[Any]:
    """Our class; None if the module `potassium` is the user's own, or is not imported."""
    return getattr(sys.modules.get("potassium.potassium"), "Potassium", None)


def _only_app(module: ModuleType) -> Optional[Any]:
    kind = potassium_class()
    if kind is None:
        return None
    found: Dict[int, str] = {}
    for name, value in vars(module).items():
        if is_a(value, kind):
            found.setdefault(id(value), name)
    names = list(found.values())
    if len(names) > 1:
        served = {found.get(id(vars(module).get(name))) for name in _names_served(module)} - {None}
        names = [name for name in names if name in served] if len(served) == 1 else names
    if len(names) > 1:
        listed = " and ".join([", ".join(f"`{name}`" for name in names[:-1]), f"`{names[-1]}`"])
        raise TypeError(f"{listed} are Potassium apps, but a file serves only one: {_CHOICE}")
    return getattr(module, names[0]) if names else None


_CHOICE = "call `serve()` on that one, or delete the others"


def _names_served(module: ModuleType) -> Set[str]:
    """The names on which the file calls `serve()`, also behind a guard that is false in a worker."""
    path = getattr(module, "__file__", None)
    if path is None:
        return set()
    ast = import_standard("ast")
    with open(path, "rb") as source:
        calls = [node.func for node in ast.walk(ast.parse(source.read())) if isinstance(node, ast.Call)]
    served = [func.value for func in calls if isinstance(func, ast.Attribute) and func.attr == "serve"]
    return {value.id for value in served if isinstance(value, ast.Name)}
