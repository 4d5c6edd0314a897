"""Turns any exception of an app's import into a message with file, line, cause and cure."""

from __future__ import annotations

import os
import sys
from typing import Optional

from banana_worker.failures.outlook import PERMANENT, TRANSIENT, outlook_of
from banana_worker.failures.sentences import as_sentence
from banana_worker.failures.stack_frame import first_frame_outside, traceback_without_own_frames
from banana_worker.failures.thrown import class_name, described, is_a, shown
from banana_worker.load.missing_module import explain_missing_module, newer_python_hint


class StartFailure(Exception):
    """The reason for which a worker cannot start: by default, the app cannot be loaded. The message names file, line,
    cause and cure; `detail`, for the log, has the traceback if that is of use; `outlook` is one of outlook.py's, the
    chance that the next start succeeds."""

    def __init__(
        self, message: str, outlook: str = PERMANENT, detail: str = "", code: str = "SERVE_APP_INVALID"
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        self.outlook = outlook


def explain_import_error(path: str, thrown: BaseException) -> StartFailure:
    """`path`: the app's file, absolute."""
    place = first_frame_outside(thrown) or path
    if not is_a(thrown, SyntaxError, ImportError, SystemExit):
        return _raised(place, thrown, PERMANENT if _is_apps_mistake(thrown) else outlook_of(thrown))
    if isinstance(thrown, SyntaxError) and thrown.filename and os.path.isabs(thrown.filename):
        return StartFailure(_explain_syntax_error(thrown, path))
    if isinstance(thrown, ModuleNotFoundError) and thrown.name:
        return StartFailure(explain_missing_module(path, place, thrown))
    if isinstance(thrown, SystemExit):
        # An app that waits for its database may end like this too, so the same end twice does not prove that it always
        # will.
        return StartFailure(_explain_exit(place, thrown), TRANSIENT)
    return _raised(place, thrown, PERMANENT if is_a(thrown, ImportError) else outlook_of(thrown))


def explain_own_mms(path: str, error: ImportError) -> StartFailure:
    """`error`: raised when our part for custom services imported an `mms` that is not ours."""
    found = sys.modules.get("mms")
    where = getattr(found, "__file__", None) or "a folder without __init__.py"
    return StartFailure(
        f'{locate_text(path, "mms")}: the app has imported an "mms" of its own ({where}), and a custom service needs'
        f" the server's: {as_sentence(str(error))} Give yours another name, or delete it if it is a copy of Multi Model Server's."
    )


def _raised(place: str, thrown: BaseException, outlook: str) -> StartFailure:
    raised = f"{place}: importing the app raised:"
    what = described(thrown)
    traceback = traceback_without_own_frames(thrown)
    hint = newer_python_hint(thrown)
    if hint:
        return StartFailure(f"{raised} {as_sentence(what)} {hint}", PERMANENT, f"{raised}\n{traceback}\n{hint}")
    return StartFailure(f"{raised} {what}", outlook, f"{raised}\n{traceback}")


def _is_apps_mistake(thrown: BaseException) -> bool:
    """Compares names, because the class may come from another copy of the package."""
    return class_name(thrown) in ("RouteAlreadyInUseException", "InvalidEndpointTypeException")


def _explain_syntax_error(error: SyntaxError, path: str) -> str:
    file = error.filename or path
    broken = _not_utf8(file)
    if broken is not None and not error.text:
        return f"{file}:{broken}: the file is not text in UTF-8: {as_sentence(error.msg)} Save it as UTF-8."
    text = (error.text or "").strip()
    shown = "" if text == "" else f": `{text[:100]}`"
    version = sys.version.split()[0]
    message = f"{file}:{error.lineno or 1}: syntax error: {error.msg}{shown} (Python {version}, {sys.executable})."
    hint = newer_python_hint(error)
    return f"{message} {hint}" if hint else message


def _not_utf8(file: str) -> Optional[int]:
    """The number of the first line that is not UTF-8; None if all are, or if the file cannot be read."""
    try:
        with open(file, "rb") as source:
            source.read().decode("utf-8")
    except UnicodeDecodeError as error:
        return error.object.count(b"\n", 0, error.start) + 1
    except OSError:
        pass  # the line number is optional
    return None


def _explain_exit(place: str, thrown: SystemExit) -> str:
    code = thrown.code
    argument = f" and said: {code}" if isinstance(code, str) else f" with {shown(code)[:200]}"
    return (
        f"{place}: importing the app called sys.exit{argument}. A worker imports the file and then calls its functions:"
        ' put the code of the main program behind `if __name__ == "__main__":`.'
    )


def locate_text(path: str, text: str) -> str:
    """`file:line` of the first line of `path` that contains `text`, or of line 1."""
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            lines = source.readlines()
    except OSError:
        return path  # the line number is optional
    return f"{path}:{next((number for number, line in enumerate(lines, 1) if text in line), 1)}"
