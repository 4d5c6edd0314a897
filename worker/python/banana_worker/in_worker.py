"""Connects an app that starts itself (`app.serve()`) with the worker that imports it, which learns from it which app
is meant."""

from __future__ import annotations

import sys
from typing import Optional, Type


class ServedHere(BaseException):
    """Ends the import of a file at `app.serve()`: the lines behind it are for after the server's end. `except
    Exception` does not stop it."""


class AppImport:
    """The import of an app's file, as a `with` statement around it; at `app.serve()` the statement ends without an
    error."""

    def __init__(self) -> None:
        self.served: Optional[object] = None
        """The app that called `serve`; None if no app did."""

    def __enter__(self) -> AppImport:
        global _current
        _current = self
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> bool:
        global _current
        _current = None
        return kind is not None and issubclass(kind, ServedHere)


_current: Optional[AppImport] = None


def is_started_by_app() -> bool:
    """Whether this process was started by the app with `multiprocessing`, which imports the app's file again."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return False
    # A process that is about to import its main program does not know its parent yet.
    is_importing_main = getattr(process.current_process(), "_inheriting", False)
    return is_importing_main or process.parent_process() is not None


def serve_in_worker(app: object) -> None:
    """Hands the app to the worker that imports its file, by raising ServedHere. Does nothing if no worker imports
    it."""
    if _current is None:
        return
    if _current.served is None:
        _current.served = app
    raise ServedHere
