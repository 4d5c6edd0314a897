"""Connects an app that starts itself (`app.serve()`) with the worker that imports it, which learns from it which app
is meant."""

from __future__ import annotations

import sys
from typing import Callable, List, Optional


class ServedHere(BaseException):
    """Ends the import of a file at `app.serve()`: the lines behind it are for after the server's end. `except
    Exception` does not stop it."""


# The apps that have called `serve` in the file that a worker imports now; None while it imports none.
_served: Optional[List[object]] = None


def served_by(execute: Callable[[], None]) -> Optional[object]:
    """Runs the import of an app's file, up to its end or to `app.serve()`. Returns the first app that called `serve`; None if
    no app did."""
    global _served
    served = _served = []
    try:
        execute()
    except ServedHere:
        pass
    finally:
        _served = None
    return served[0] if served else None


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
    if _served is None:
        return
    _served.append(app)
    raise ServedHere
