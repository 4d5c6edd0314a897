"""The loader of a module, which executes an app's file as `python app.py` would, but under its own module name, so that
main guards are false. A loader makes what an adapter takes from the file of an app; `load_app.py` has the list.

A file or folder beside the app with the name of one of the server's packages is used instead, with a warning."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import types
import warnings
from typing import Any, Callable, NamedTuple, Optional, Sequence

from banana_worker.failures.stack_frame import is_own
from banana_worker.in_worker import served_by
from banana_worker.load.explain_load_error import StartFailure, explain_import_error
from banana_worker.load.explain_missing_app import missing_inference
from banana_worker.load.missing_module import FOLDER_PACKAGE
from banana_worker.process import descriptors
from banana_worker.process.ending import check_is_worker
from banana_worker.protocol.messages import StartSpec
from banana_worker.standard_modules import import_standard, keep_apart


class Imported(NamedTuple):
    path: str
    # A file that is no module gives one with the same names: `init`, `inference`, ...
    module: types.ModuleType
    # The object whose `serve()` was called while the file was imported; None if there was no such call.
    served: Optional[object]
    # Returns the error of a file whose contents no adapter takes.
    explain_missing: Callable[[], StartFailure]


# Gets all that the worker was started with: the file, the device and its threads. @raises StartFailure
Loader = Callable[[StartSpec], Imported]


def load_module(spec: StartSpec) -> Imported:
    """@raises StartFailure, SystemExit"""
    module = make_module(spec.app, None if spec.service is None else spec.service.model_dir)
    try:
        served = served_by(lambda: execute(module))
        check_is_worker(None)
    except BaseException as thrown:
        if descriptors.in_fork():
            check_is_worker(thrown)
        raise explain_import_error(spec.app, thrown) from thrown
    return Imported(spec.app, module, served, lambda: missing_inference(spec.app, module))


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


# The name that `multiprocessing` gives to the main program of a process that it starts with `spawn`.
_NAME_FOR_TAKEN = "__mp_main__"


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
