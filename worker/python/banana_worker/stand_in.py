"""Packages that stand in for the originals' (`potassium`, `mms`, `ts`) have what apps use of them, and no more.

Who imports anything else is told that it is not there, and what is.
"""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType
from typing import Any, Callable, Dict, Optional, Sequence


def names_of_module(module: str, names: Sequence[str]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module that has these names: the import of any other is an ImportError that lists them.

    Who only looks whether a name is there, as pickle does in every module, gets an AttributeError.
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
    """Makes `from package import x` and `import package.x` an ImportError that lists what there is, if x is neither."""
    if not _FINDER.packages:
        # The last finder is asked for what no other has found.
        sys.meta_path.append(_FINDER)
    _FINDER.packages[package] = [*names, *(f"{package}.{name}" for name in modules)]


class _Finder:
    """An import hook that finds nothing, and says so in better words."""

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
