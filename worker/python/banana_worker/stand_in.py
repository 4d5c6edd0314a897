"""The packages that stand in for the originals' (`potassium`, `mms`, `ts`) have the names that apps use, and no others.

Importing any other name raises an ImportError that lists the names that exist.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from opcode import opmap
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Set


def names_of_module(module: str, names: Sequence[str]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module that has these names: importing any other raises an ImportError that lists
    them.

    Code that only looks a name up, as pickle does in every module, gets an AttributeError.
    """

    def absent(name: str) -> Any:
        if _imports(sys._getframe(1)):
            raise ImportError(_message(module, name, names), name=f"{module}.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return absent


def _imports(frame: FrameType) -> bool:
    """Whether the frame is at the name of a `from module import name`."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def names_of_package(package: str, names: Sequence[str], modules: Sequence[str] = ()) -> None:
    """Makes `from package import x` and `import package.x` an ImportError that lists the names that exist, if x is
    none of them; and so for the packages between it and its modules, such as `a` of the module `a.b`."""
    if not _FINDER.packages:
        # As the last finder, it is asked only for modules that no other has found.
        sys.meta_path.append(_FINDER)
    _FINDER.packages[package] = [*names, *(f"{package}.{name}" for name in modules)]
    for inner in _packages_of(modules):
        _FINDER.packages[f"{package}.{inner}"] = [f"{package}.{one}" for one in modules if one.startswith(f"{inner}.")]


def same_modules(package: str, originals: Mapping[str, str]) -> None:
    """Gives the package modules with the public names (`__all__`) of others, such as `{"metrics.unit": "mms.metrics.unit"}`,
    and the packages that lie between."""
    for name, original in originals.items():
        _FINDER.originals[f"{package}.{name}"] = original
    for inner in _packages_of(originals):
        _FINDER.originals[f"{package}.{inner}"] = ""


def _packages_of(modules: Iterable[str]) -> Set[str]:
    return {name.rpartition(".")[0] for name in modules} - {""}


class _Finder:
    """An import hook for the modules of `same_modules`; for any other, it raises an ImportError with a better message."""

    def __init__(self) -> None:
        self.packages: Dict[str, Sequence[str]] = {}
        # Modules by their full names; empty for a package.
        self.originals: Dict[str, str] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        original = self.originals.get(fullname)
        if original is not None:
            loader: Any = _SameNames(original)
            return ModuleSpec(fullname, loader, is_package=original == "")
        package, _, name = fullname.rpartition(".")
        names = self.packages.get(package)
        if names is None:
            return None
        raise ImportError(_message(package, name, names), name=fullname)


class _SameNames:
    """Loads a module with the public names of another."""

    def __init__(self, original: str) -> None:
        self._original = original

    def create_module(self, spec: ModuleSpec) -> None:
        """Python makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        if self._original == "":
            return
        names = importlib.import_module(self._original).__all__
        vars(module).update({name: getattr(sys.modules[self._original], name) for name in names})
        vars(module).update(__all__=names, __getattr__=names_of_module(module.__name__, names))


_FINDER = _Finder()


def _message(module: str, name: str, names: Sequence[str]) -> str:
    return f"banana-serve's {module} has no {name}. It has: {', '.join(names)}"
