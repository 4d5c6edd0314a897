"""Imports modules of the standard library late, without taking a file of the same name beside the app instead."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from _thread import get_ident
from typing import Any, Optional, Sequence


def import_standard(name: str) -> Any:
    """Imports a standard module as if the app's folder were not on the path, for this thread alone."""
    if name in sys.modules:
        return sys.modules[name]
    thread = get_ident()
    is_outermost = thread not in _threads
    _threads.add(thread)
    try:
        return importlib.import_module(name)
    finally:
        if is_outermost:
            _threads.discard(thread)


class _PastTheApp:
    """Finds modules for threads that import standard ones. It is never removed: a change of the list of finders, or
    of the path, would fail the imports of other threads."""

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        if path is not None or get_ident() not in _threads:
            return None
        # The folder in which the worker itself was found stays on the path; it holds no standard modules.
        folders = [folder for folder in sys.path if folder not in _others]
        return importlib.machinery.PathFinder.find_spec(name, folders)


_others: "set[str]" = set()
_threads: "set[int]" = set()
_finder: Any = _PastTheApp()


def keep_apart(folder: str) -> None:
    """Registers a folder that holds modules of the app."""
    _others.add(folder)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
