"""The loaders, which make what an adapter takes from the file of an app: one for each kind of file. `load_app.py` has the
list; the one here loads a module, which executes the file."""

from __future__ import annotations

import types
from typing import Callable, NamedTuple, Optional

from banana_worker.in_worker import AppImport
from banana_worker.load.app_module import execute, make_module
from banana_worker.load.explain_load_error import StartFailure, explain_import_error
from banana_worker.load.explain_missing_app import missing_inference
from banana_worker.process import descriptors
from banana_worker.process.app_exit import check_is_worker
from banana_worker.protocol.messages import StartSpec


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
        with AppImport() as importing:
            execute(module)
        if descriptors.in_fork():
            check_is_worker(None)
    except BaseException as thrown:
        if descriptors.in_fork():
            check_is_worker(thrown)
        raise explain_import_error(spec.app, thrown) from thrown
    return Imported(spec.app, module, importing.served, lambda: missing_inference(spec.app, module))
