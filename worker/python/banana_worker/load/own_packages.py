"""The names of the server's own packages. A file or folder of such a name beside the app is used instead, with a
warning."""

from __future__ import annotations

import importlib.machinery
import sys
import warnings
from typing import Any, Optional, Sequence

from banana_worker.failures.stack_frame import is_own

# The servers whose packages ours stand in for.
_SERVERS = {"potassium": "Potassium", "mms": "Multi Model Server", "ts": "TorchServe"}

OWN_PACKAGES = (*_SERVERS, "banana_serve", "banana_worker")


class _Watch:
    """An import hook that finds nothing, but warns of the first import that finds another package than ours."""

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> None:
        if path is not None or (name not in _SERVERS and name != "banana_serve"):
            return
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is None:
            return
        place = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
        if not is_own(place):
            cure = "Give it another name."
            if name in _SERVERS:
                cure = f"If that is a copy of {_SERVERS[name]}, delete it: it would start a server of its own."
            warnings.warn(f'"{name}" is {place}, in place of the package of banana-serve. {cure}', stacklevel=2)


_watch: Any = _Watch()


def watch_imports() -> None:
    """Warns from now on. The hook comes behind the one that finds modules for the worker itself."""
    if _watch not in sys.meta_path:
        sys.meta_path.insert(1, _watch)
