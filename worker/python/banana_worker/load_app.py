"""From an app's file to a `LoadedApp`."""

from __future__ import annotations

import importlib.util
import os
import sys

from banana_worker.adapters.banana_app import from_banana_app
from banana_worker.loaded_app import LoadedApp
from banana_worker.messages import StartSpec


class AppLoadError(Exception):
    """The app cannot be loaded. The message names file, line, cause and cure; `outlook` is one of outlook.py's."""

    def __init__(self, message: str, outlook: str = "permanent") -> None:
        super().__init__(message)
        self.outlook = outlook


def load_app(spec: StartSpec) -> LoadedApp:
    """Executes the app's file and finds the app in it. @raises AppLoadError"""
    name = os.path.splitext(os.path.basename(spec.app))[0]
    found = importlib.util.spec_from_file_location(name, spec.app)
    if found is None or found.loader is None:
        raise AppLoadError("%s: it is no Python file" % spec.app)
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, os.path.dirname(spec.app))
    sys.modules[name] = sys.modules["__main__"] = module
    sys.argv = [spec.app]
    found.loader.exec_module(module)
    app = from_banana_app(module)
    if app is None:
        raise AppLoadError("%s: it has no `inference`" % spec.app)
    return app
