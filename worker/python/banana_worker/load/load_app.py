"""Imports the app's file and finds the adapter that fits its contents."""

from __future__ import annotations

import os
import re
import types
from typing import Callable, NamedTuple, Optional

from banana_worker.adapters.banana_app import from_banana_app
from banana_worker.adapters.potassium_app import from_potassium_app
from banana_worker.failures.app_function import WrongFunction
from banana_worker.in_worker import AppImport
from banana_worker.load.app_module import execute, make_module
from banana_worker.load.explain_load_error import AppLoadError, explain_import_error, explain_own_mms, locate_text
from banana_worker.load.explain_missing_app import missing_handler, missing_inference, not_loadable
from banana_worker.load.service_logging import log_from_info
from banana_worker.process import descriptors
from banana_worker.protocol.messages import StartSpec
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.run.runner import check_is_worker
from banana_worker.standard_modules import import_standard

__all__ = ["AppLoadError", "load_app"]


class _Imported(NamedTuple):
    path: str
    module: types.ModuleType
    # The object whose `serve()` was called while the file was imported; None if there was no such call.
    served: Optional[object]


def load_app(spec: StartSpec) -> LoadedApp:
    """Executes the app's file and finds the app in it: the first of Potassium, Banana and a custom service.

    @raises AppLoadError with file, line, cause and cure
    """
    mistake = not_loadable(spec.app)
    if mistake is not None:
        raise mistake
    if spec.service is not None:
        log_from_info()
    imported = _import_app(spec)
    handler = "" if spec.service is None else spec.service.handler
    app = None if handler else _adapt(imported, _potassium_or_banana)
    app = app or _service(imported, spec)
    if app is None:
        raise missing_inference(imported.path, imported.module)
    return app


def _import_app(spec: StartSpec) -> _Imported:
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
    return _Imported(spec.app, module, importing.served)


def _potassium_or_banana(imported: _Imported) -> Optional[LoadedApp]:
    return from_potassium_app(imported.module, imported.served) or from_banana_app(imported.module)


def _service(imported: _Imported, spec: StartSpec) -> Optional[LoadedApp]:
    """The custom service in the module; None if there is none and none was asked for. @raises AppLoadError"""
    module, source = imported.module, spec.service
    if source is None and hasattr(module, "inference"):
        return None
    try:
        from_service = import_standard("banana_worker.adapters.mms_service").from_service
    except ImportError as error:
        raise explain_own_mms(imported.path, error) from error
    model_dir = os.path.dirname(imported.path) if source is None else source.model_dir
    app = _adapt(imported, lambda one: from_service(one.module, source, model_dir))
    if app is None and source is not None:
        found = import_standard("banana_worker.adapters.service_handler").service_classes(module)
        classes = [one.__name__ for one in found]
        raise missing_handler(imported.path, module, source.handler, classes)
    if app is not None:
        log_from_info()
    return app


def _adapt(imported: _Imported, adapt: Callable[[_Imported], Optional[LoadedApp]]) -> Optional[LoadedApp]:
    """@raises AppLoadError in place of the TypeError about a name of the module with a wrong type"""
    try:
        return adapt(imported)
    except TypeError as wrong:
        if isinstance(wrong, WrongFunction) and wrong.place is not None:
            raise AppLoadError(f"{wrong.place}: {wrong}") from wrong
        name = re.search(r"`(\w+)`", str(wrong))
        where = locate_text(imported.path, name.group(1)) if name else imported.path
        raise AppLoadError(f"{where}: {wrong}") from wrong
