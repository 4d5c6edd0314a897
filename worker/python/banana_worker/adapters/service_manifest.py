"""Reads the manifest of Multi Model Server's archives in a model's folder."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Tuple


def read_manifest(model_dir: str) -> Tuple[Optional[Dict[str, Any]], bool]:
    """The manifest, or None if the folder has none; and whether it is that of an archive of version 0.x, which lies beside
    the model's files. Raises an error with the file's path if it cannot be read, or is not a JSON object."""
    manifest = _read(os.path.join(model_dir, "MAR-INF", "MANIFEST.json"))
    if manifest is not None:
        return manifest, False
    old = _read(os.path.join(model_dir, "MANIFEST.json"))
    return old, old is not None


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except ValueError as cause:
        raise ValueError(f"{path} is not JSON: {cause}") from cause
    if isinstance(value, dict):
        return value
    raise ValueError(f"{path} is not a JSON object")
