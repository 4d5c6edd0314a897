"""Reads and checks the `task` of an app, what its model does, and `token_input`."""

from __future__ import annotations

from types import ModuleType
from typing import Optional

from banana_worker.protocol.tables import TASKS
from banana_worker.values.tensor import shown


def task_of(module: ModuleType) -> Optional[str]:
    """None for an app without one: any other value of that name is the app's own. @raises TypeError for a task that is
    written wrong"""
    given: object = getattr(module, "task", None)
    if not isinstance(given, str) or not given.lower().startswith(tuple(task[:5] for task in TASKS)):
        return None
    if given in TASKS:
        return given
    raise TypeError(f"`task` is {shown(given)}; there are {', '.join(TASKS)}")


def takes_tokens(module: ModuleType) -> bool:
    return getattr(module, "token_input", None) is True
