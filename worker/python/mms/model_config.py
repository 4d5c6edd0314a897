"""The configuration in the archive of a model of TorchServe."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional


def read_model_config(model_dir: str, manifest: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The content of the file that the manifest names as `model.configFile`; empty if it names none.

    Raises AttributeError if it is YAML and there is no PyYAML, so that `hasattr` finds none; ValueError if it is not
    a mapping.
    """
    name = ((manifest or {}).get("model") or {}).get("configFile")
    if not name:
        return {}
    path = os.path.join(model_dir, name)
    with open(path, encoding="utf-8") as file:
        config = json.load(file) if name.endswith(".json") else _yaml_of(path).safe_load(file)
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ValueError("{}: a model's configuration is names and values, not {}".format(path, type(config).__name__))
    return config


def _yaml_of(path: str) -> Any:
    try:
        import yaml  # pyright: ignore[reportMissingModuleSource]
    except ImportError as error:
        raise AttributeError("{} is YAML, which is read by PyYAML: pip install pyyaml".format(path)) from error
    return yaml
