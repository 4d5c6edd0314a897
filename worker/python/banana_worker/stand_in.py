"""The packages that stand in for the originals' (`potassium`, `mms`, `ts`) have the names that apps use, and no others.

Importing any other name raises an ImportError that lists the names that exist.
"""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType
from typing import Any, Callable, Dict, Optional, Sequence


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
    none of them."""
    if not _FINDER.packages:
        # As the last finder, it is asked only for modules that no other has found.
        sys.meta_path.append(_FINDER)
    _FINDER.packages[package] = [*names, *(f"{package}.{name}" for name in modules)]


class _Finder:
    """An import hook that finds nothing, but raises an ImportError with a better message."""

    def __init__(self) -> None:
        self.packages: Dict[str, Sequence[str]] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[Any]:
        package, _, name = fullname.rpartition(".")
        names = self.packages.get(package)
        if names is None:
            return None
        raise ImportError(_message(package, name, names), name=fullname)


_FINDER = _Finder()


def _message(module: str, name: str, names: Sequence[str]) -> str:
    return f"banana-serve's {module} has no {name}. It has: {', '.join(names)}"
