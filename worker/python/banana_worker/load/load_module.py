"""Loads a module: executes the app's file."""

from __future__ import annotations

from banana_worker.in_worker import AppImport
from banana_worker.load.app_module import execute, make_module
from banana_worker.load.explain_load_error import explain_import_error
from banana_worker.load.explain_missing_app import missing_inference
from banana_worker.load.loader import Imported
from banana_worker.process import descriptors
from banana_worker.protocol.messages import StartSpec
from banana_worker.run.runner import check_is_worker


def load_module(spec: StartSpec) -> Imported:
    """@raises AppLoadError, SystemExit"""
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
