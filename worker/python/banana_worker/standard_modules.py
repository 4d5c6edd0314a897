"""Modules of the standard library that are imported late: files of the same name beside the app must not take their place."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def import_standard(name: str) -> Any:
    """Imports a standard module as if the app's folder were not on the path."""
    if name in sys.modules:
        return sys.modules[name]
    path = sys.path
    # What the worker itself was found by comes behind the app's folder; both hold no standard modules.
    sys.path = [folder for folder in path if folder not in _others]
    try:
        return importlib.import_module(name)
    finally:
        sys.path = path


_others: "set[str]" = set()


def keep_apart(folder: str) -> None:
    """Names a folder that holds modules of the app."""
    _others.add(folder)
