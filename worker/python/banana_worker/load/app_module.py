"""Executes an app's file as `python app.py` would, but under its own module name, so that main guards are false."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import types
from typing import Optional

from banana_worker.load.own_packages import OWN_PACKAGES, watch_imports
from banana_worker.standard_modules import import_standard, keep_apart

# The name that `multiprocessing` gives to the main program of a process that it starts with `spawn`.
_NAME_FOR_TAKEN = "__mp_main__"

# The folder of the app as a package, so that `from . import sibling` works.
FOLDER_PACKAGE = "__app_folder__"


def make_module(path: str, model_dir: Optional[str] = None) -> types.ModuleType:
    """The module of the file, not executed yet, with its surroundings set: `sys.modules`, `sys.path`, `sys.argv`.
    `model_dir`: another folder with modules of the app. The siblings of a link are those of its target."""
    name = _name_for(path)
    folder = os.path.dirname(os.path.realpath(path))
    module = types.ModuleType(name)
    module.__file__ = path
    module.__loader__ = importlib.machinery.SourceFileLoader(name, path)
    module.__package__ = FOLDER_PACKAGE
    # Without a spec, `multiprocessing` starts its processes from the path, as it does for `python app.py`.
    module.__spec__ = None
    sys.modules[FOLDER_PACKAGE] = _folder_package(folder)
    sys.modules[name] = sys.modules["__main__"] = module
    sys.argv = [path]
    if model_dir is not None and model_dir != folder:
        _put_first(model_dir)
    _put_first(folder)
    watch_imports()
    return module


def _put_first(folder: str) -> None:
    sys.path.insert(0, folder)
    keep_apart(folder)


def execute(module: types.ModuleType) -> None:
    """Runs the file. Its compiled form is not kept, because two versions of the same second and size would count as
    one. Raises any error of reading, compiling and running it."""
    loader = module.__loader__
    assert isinstance(loader, importlib.machinery.SourceFileLoader)
    source = loader.get_data(loader.path)
    if b"\0" in source:  # Python refuses it without naming the line
        line = source.count(b"\n", 0, source.index(b"\0")) + 1
        raise SyntaxError("a null byte", (loader.path, line, None, None))
    exec(compile(source, loader.path, "exec", dont_inherit=True), module.__dict__)


def _folder_package(folder: str) -> types.ModuleType:
    package = types.ModuleType(FOLDER_PACKAGE)
    package.__path__ = [folder]
    return package


def _name_for(path: str) -> str:
    """The name of the file, unless a module of Python or of ours has it: an import of that name must find the
    module."""
    name = os.path.splitext(os.path.basename(path))[0]
    # Imported before the app's folder is on the path.
    if name in OWN_PACKAGES:
        importlib.import_module(name)
    elif _is_standard(name):
        import_standard(name)
    return _NAME_FOR_TAKEN if name in sys.modules else name


def _is_standard(name: str) -> bool:
    if name in sys.builtin_module_names:
        return True
    place = os.path.join(os.path.dirname(os.__file__), name)
    return os.path.isfile(place + ".py") or os.path.isfile(os.path.join(place, "__init__.py"))
