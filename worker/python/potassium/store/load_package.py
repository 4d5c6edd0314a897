"""Loads a package that only one backend needs, when a store of that backend is made."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def load_package(name: str) -> Any:
    """Raises ImportError that explains how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise ImportError(
            f"This store needs the package {name}, which {sys.executable} cannot load ({cause}). Run: pip install {name}",
            name=name,
        ) from cause
