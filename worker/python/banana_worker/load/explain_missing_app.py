"""Explains a file in which no app is found."""

from __future__ import annotations

import os
import re
import types
from collections import Counter
from typing import Any, List, Optional, Sequence, Set

from banana_worker.adapters.potassium_app import potassium_class
from banana_worker.failures.sentences import kind_of
from banana_worker.failures.thrown import is_a
from banana_worker.load.explain_load_error import StartFailure, locate_text
from banana_worker.process.hint_once import hint_once
from banana_worker.standard_modules import import_standard

_CLOSE = re.compile(r"infer|predict|handler|run|generate|forward|main", re.IGNORECASE)


def check_loadable(path: str) -> None:
    """Called before the file is loaded, because nothing else has checked its path. @raises StartFailure"""
    folder, name = os.path.split(path)
    if os.path.isfile(folder):
        raise StartFailure(f"{folder}: the model is this file, but its handler names another one, {name}.")
    if os.path.isdir(path):
        raise StartFailure(
            f"{path}: it is not clear which file is the handler. Name it at the registration"
            " (handler=file:function), or name the file app.py."
        )
    if not os.path.exists(path):
        raise StartFailure(f"{path}: no such file. Check the path and its extension.")
    if not os.access(path, os.R_OK):
        raise StartFailure(f"{path}: the file cannot be read: the server's user has no permission for it.")


def missing_inference(path: str, module: types.ModuleType) -> StartFailure:
    """The error of a file that is not an app of any kind."""
    file = os.path.basename(path)
    if "inference" in vars(module):
        where = locate_text(path, "inference")
        return StartFailure(f"{where}: `inference` is {kind_of(vars(module)['inference'])}; make it a function")
    body = _statements_of(path)
    hidden = _hidden_inference(path, body) or _hidden_potassium(path, body)
    if hidden is not None:
        return StartFailure(hidden)
    names = _own_names(module, body)
    where, cure = f"{path}:1", "Add `def inference(model_inputs): ...`."
    callables = [name for name in names if callable(getattr(module, name))]
    close = next((name for name in callables if _CLOSE.search(name) or _mistyped_as(name, _CALLED)), None)
    if _knows_potassium(module):
        cure = f"{_MAKE_APP}, if it is a Potassium app, or add `def inference(model_inputs): ...`."
    elif close is not None:
        meant = _mistyped_as(close, _CALLED)
        right = meant or ("inference_batch" if "batch" in close.lower() else "inference")
        where = locate_text(path, f" {close}")
        cure = f"{'' if meant is None else f'Did you mean `{meant}`? '}Rename `{close}` to `{right}`."
    return StartFailure(f"{where}: {file} has no function `inference`. {_names(names)} {cure}")


# Functions of which an app needs one.
_CALLED = ("inference", "inference_batch")

_FUNCTIONS = (*_CALLED, "init", "shutdown")


def hint_misnamed(path: str, module: types.ModuleType) -> None:
    """Writes a line to the log about each function of the file whose name is nearly that of one that the app does not
    have: an `inti` would never run, and nobody would know."""
    missing = [name for name in _FUNCTIONS if name not in vars(module)]
    for name, value in vars(module).items():
        if not is_a(value, types.FunctionType) or value.__module__ != module.__name__ or name in _FUNCTIONS:
            continue
        meant = _mistyped_as(name, missing)
        if meant is not None:
            where = locate_text(path, f" {name}")
            hint_once(f"function {name}", f"{where}: the server never calls `{name}`. Did you mean `{meant}`?")


def _mistyped_as(name: str, words: Sequence[str]) -> Optional[str]:
    """The one of `words` that was meant: it begins alike, and at most two letters differ, whatever their order. This runs
    at every start, and `difflib` takes longer to import than all else here."""
    return next((word for word in words if name[:1] == word[0] and _letters_apart(name.lower(), word) <= 2), None)


def _letters_apart(one: str, other: str) -> int:
    letters, others = Counter(one), Counter(other)
    return sum((letters - others).values()) + sum((others - letters).values())


def missing_handler(path: str, module: types.ModuleType, name: str, classes: List[str]) -> StartFailure:
    """The error of a file that was named as a service, and has no handler of that name. `classes`: those with a
    `handle` method."""
    file = os.path.basename(path)
    wanted = f"`{name}`" if name else "a function `handle`"
    choice = "Add `def handle(data, context): ...`, or one class with such a method."
    if len(classes) > 1:
        listed = ", ".join(classes)
        choice = f"It has the classes {listed} with a `handle` method: name one, as in {file}:{classes[0]}."
    has = _names(_own_names(module, _statements_of(path)))
    problem = f"no handler: {file} has neither {wanted} nor exactly one class with a `handle` method."
    return StartFailure(f"{path}:1: {problem} {has} {choice}")


def _own_names(module: types.ModuleType, body: List[Any]) -> List[str]:
    """The names that the file gives to functions, classes and values, without its imports."""
    imported = _imported_names(body)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("__") and name not in imported and not is_a(value, types.ModuleType)
    ]


def _imported_names(body: List[Any]) -> Set[str]:
    """The names that a module's imports get in it, those under an `if` or a `try` included."""
    ast = import_standard("ast")
    outer = [one for one in body if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    imports = [inner for one in outer for inner in ast.walk(one) if isinstance(inner, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name for one in imports for alias in one.names}


def _names(names: List[str]) -> str:
    if not names:
        return "It defines nothing."
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"It has: {', '.join(names[:20])}{more}."


def _statements_of(path: str) -> List[Any]:
    """The statements of the top level of the file; none if it has changed since it was imported and cannot be read
    any more."""
    try:
        with open(path, "rb") as source:
            body: List[Any] = import_standard("ast").parse(source.read()).body
            return body
    except (OSError, SyntaxError, ValueError):
        return []


def _hidden_potassium(path: str, body: List[Any]) -> Optional[str]:
    """Explains a file that has imported our Potassium and makes an app that no name of the module refers to."""
    if potassium_class() is None:
        return None
    ast = import_standard("ast")
    calls = [inner for one in body for inner in ast.walk(one) if isinstance(inner, ast.Call)]
    made = [one for one in calls if getattr(one.func, "id", getattr(one.func, "attr", "")) == "Potassium"]
    if not made:
        return None
    problem = f"{os.path.basename(path)} creates a Potassium app, but no variable at the top level of the file holds it"
    return f"{path}:{made[0].lineno}: {problem}: one in a function, a list or a dict is not found. {_MAKE_APP}."


_MAKE_APP = "Write `app = ...` at the top level of the file, such as `app = create_app()`"


def _knows_potassium(module: types.ModuleType) -> bool:
    """Whether the file, or the file of a function or module in it, has imported our Potassium and may make an app."""
    kind = potassium_class()
    spaces = [vars(module)]
    for value in vars(module).values():
        if is_a(value, types.ModuleType):
            spaces.append(_DICT.__get__(value))
        elif is_a(value, types.FunctionType):
            spaces.append(value.__globals__)
    return kind is not None and any(value is kind for space in spaces for value in space.values())


# Python's own descriptor: reading the attribute would load a module that loads itself on its first use.
_DICT: Any = vars(types.ModuleType)["__dict__"]


def _hidden_inference(path: str, body: List[Any]) -> Optional[str]:
    """Explains a `def inference` that is in the file but not a name of the module."""
    ast = import_standard("ast")
    for outer in body:
        if not isinstance(outer, (ast.If, ast.ClassDef, ast.FunctionDef)):
            continue
        for inner in ast.walk(outer):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner.name == "inference":
                place = f"{path}:{inner.lineno}"
                return f"{place}: `inference` is defined {_inside(outer)}. Move it to the top level of the file."
    return None


def _inside(outer: Any) -> str:
    kind = type(outer).__name__
    if kind == "ClassDef":
        return f"inside the class {outer.name}"
    if kind == "FunctionDef":
        return f"inside the function {outer.name}"
    return 'under an `if` that is false in a worker, such as `if __name__ == "__main__":`'
