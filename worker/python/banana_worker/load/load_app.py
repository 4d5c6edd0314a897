"""Makes an app of a file: its loader imports the file, and an adapter takes what is in it."""

from __future__ import annotations

import os
import re
import sys
from typing import Callable, Dict, Mapping, Optional

from banana_worker.adapters.banana_app import from_banana_app
from banana_worker.adapters.functions import runs_in_event_loop
from banana_worker.adapters.potassium_app import from_potassium_app
from banana_worker.failures.app_function import WrongFunction, place_of
from banana_worker.load.explain_load_error import StartFailure, explain_own_mms, locate_text
from banana_worker.load.explain_missing_app import check_loadable, hint_misnamed, missing_handler
from banana_worker.load.load_module import Imported, Loader, load_module
from banana_worker.protocol.messages import StartSpec
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.standard_modules import import_standard

# Loaders by the extension of their files; a file that does not exist may have any.
_LOADERS: Dict[str, Loader] = {".py": load_module}


def load_app(spec: StartSpec, loaders: Mapping[str, Loader] = _LOADERS) -> LoadedApp:
    """Loads the app's file and finds the app in it: the first of Potassium, Banana and a custom service.

    @raises StartFailure with file, line, cause and cure
    """
    check_loadable(spec.app)
    if spec.service is not None:
        _log_from_info()
    imported = loaders.get(os.path.splitext(spec.app)[1], load_module)(spec)
    handler = "" if spec.service is None else spec.service.handler
    app = None if handler else _adapt(imported, _potassium_or_banana)
    app = app or _service(imported, spec)
    if app is None:
        raise imported.explain_missing()
    if concurrency_of(app, spec) > 1:
        _check_runs_in_loop(app, spec)
    return app


def concurrency_of(app: LoadedApp, spec: StartSpec) -> int:
    """The calls that run at the same time: as many as the app takes and the operator allows."""
    return min(app.description.concurrency, spec.concurrency)


def _check_runs_in_loop(app: LoadedApp, spec: StartSpec) -> None:
    """@raises StartFailure for a function that would keep the other calls of its worker waiting"""
    for route in app.description.routes:
        function = app.function(route.path)
        if not runs_in_event_loop(function):
            name = getattr(function, "__name__", "the function of %s" % route.path)
            place = place_of(function) or locate_text(spec.app, name)
            raise StartFailure(_PLAIN.format(place=place, name=name))


_PLAIN = (
    "{place}: `{name}` is a plain `def`, and no other call of its worker runs while it does. With `concurrency` above 1 "
    "make it an `async def` that awaits what it waits for, or remove `concurrency` from `config`"
)


def _potassium_or_banana(imported: Imported) -> Optional[LoadedApp]:
    potassium = from_potassium_app(imported.module, imported.served)
    if potassium is not None:
        return potassium
    banana = from_banana_app(imported.module)
    if banana is not None:
        hint_misnamed(imported.path, imported.module)
    return banana


def _log_from_info() -> None:
    """From here on, messages of level INFO and above are lines on stdout, as with Multi Model Server and TorchServe. Does
    nothing if the app has set up its own log."""
    logging = import_standard("logging")
    # False if `logging` is a file of the app.
    if hasattr(logging, "basicConfig"):
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)


def _service(imported: Imported, spec: StartSpec) -> Optional[LoadedApp]:
    """The custom service in the module; None if there is none and none was asked for. @raises StartFailure"""
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
        _log_from_info()
    return app


def _adapt(imported: Imported, adapt: Callable[[Imported], Optional[LoadedApp]]) -> Optional[LoadedApp]:
    """@raises StartFailure in place of the TypeError about a name of the module with a wrong type"""
    try:
        return adapt(imported)
    except TypeError as wrong:
        if isinstance(wrong, WrongFunction) and wrong.place is not None:
            raise StartFailure(f"{wrong.place}: {wrong}") from wrong
        name = re.search(r"`(\w+)`", str(wrong))
        where = locate_text(imported.path, name.group(1)) if name else imported.path
        raise StartFailure(f"{where}: {wrong}") from wrong
