"""Converts any output of an app to None, bool, int, float, str, list and dict, or names the place of a value that is
not data. Thorough, but slow: JSON comes here only if the fast way has failed (`json_encoding.py`)."""

from __future__ import annotations

import json
import re
from typing import Callable, Dict, List, Set

from banana_worker.failures.outlook import is_of_process
from banana_worker.failures.sentences import as_sentence, kind_of
from banana_worker.failures.stack_frame import traceback_without_own_frames
from banana_worker.process.hint_once import hint_once
from banana_worker.protocol.errors import ServeError
from banana_worker.text.json_limits import digits_of, is_too_long
from banana_worker.values.conversions import Simpler, is_image, png_bytes, simpler
from banana_worker.values.not_data import NotData

# Deeper values would come near the recursion limit of Python: each level takes five frames of 1000.
MAX_DEPTH = 128


def plain_value(
    value: object,
    is_binary: bool,
    simpler: Simpler = simpler,
    has_hints: bool = True,
    own: Callable[[object], object] = lambda value: None,
) -> object:
    """`is_binary`: for a format with bytes and NaN, but without integers beyond 64 bits; otherwise for JSON, where
    NaN and infinities are None, for which the log has a hint if `has_hints`. `simpler` takes one step from any other
    value towards data. `own` returns the format's own form of a value, which is not looked into; None for most.
    @raises SERVE_OUTPUT_INVALID that names the place of a wrong value."""
    whole = _Plain(is_binary, simpler, own)
    try:
        plain = whole.convert(value, "output")
    except _Misplaced as cause:
        kind = "MessagePack" if is_binary else "JSON"
        message = f"The output is not {kind}: {as_sentence(str(cause))}"
        raised = cause.__cause__
        detail = "" if raised is None else f"{message}\n{traceback_without_own_frames(raised)}"
        raise ServeError("SERVE_OUTPUT_INVALID", message, detail) from raised
    if has_hints and whole.not_finite:
        hint_once(
            "not finite",
            f"{whole.not_finite} is not a finite number; JSON has no such number, so it was written as null.",
        )
    return plain


class _Misplaced(Exception):
    """The description of a wrong value and its place."""


class _Plain:
    def __init__(self, is_binary: bool, simpler: Simpler, own: Callable[[object], object]) -> None:
        self.is_binary = is_binary
        self.simpler = simpler
        self.own = own
        # The place of the first number that became None.
        self.not_finite = ""
        self.ancestors: Set[int] = set()

    def convert(self, value: object, place: str) -> object:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, float):
            return self.number(float(value), place)
        if isinstance(value, int):
            return self.integer(int(value), place)
        if self.is_binary and isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if self.is_binary and is_image(value):
            return png_bytes(value)
        own = self.own(value)
        return self.inside(value, place) if own is None else own

    def number(self, value: float, place: str) -> object:
        if self.is_binary or value - value == 0:
            return value
        self.not_finite = self.not_finite or place
        return None

    def integer(self, value: int, place: str) -> int:
        if self.is_binary and not -(2**63) <= value < 2**64:
            raise _Misplaced(f"{place} is an integer beyond 64 bits; return it as text")
        if is_too_long(value):
            raise _Misplaced(f"{place} is a whole number of some {digits_of(value)} digits; return it as text")
        return value

    def inside(self, value: object, place: str) -> object:
        if id(value) in self.ancestors:
            raise _Misplaced(f"{place} refers back to an object that contains it")
        if len(self.ancestors) >= MAX_DEPTH:
            raise _Misplaced(f"output is nested more than {MAX_DEPTH} levels deep")
        self.ancestors.add(id(value))
        plain = self.parts(value, place)
        self.ancestors.discard(id(value))
        return plain

    def parts(self, value: object, place: str) -> object:
        if isinstance(value, dict):
            return self.entries(value, place)
        if isinstance(value, (list, tuple)):
            return self.items(value, place)
        try:
            step = self.simpler(value)
        except NotData as problem:
            raise _Misplaced(f"{place} {problem}") from None
        except Exception as error:
            if is_of_process(error):
                raise  # a GPU may report only here, where its numbers are read, that the model has failed
            # The text of the exception is the app's, and may not be meant for clients.
            raise _Misplaced(f"{place} ({type(value).__name__}) cannot be read: {type(error).__name__}") from error
        return self.convert(step, place)

    def items(self, values: "List[object] | tuple[object, ...]", place: str) -> List[object]:
        if all(type(value) is float for value in values):
            numbers: List[object] = [value if value - value == 0 else None for value in values]  # type: ignore[operator]
            if self.is_binary or None not in numbers:
                return list(values)
            self.not_finite = self.not_finite or f"{place}[{numbers.index(None)}]"
            return numbers
        return [self.convert(value, f"{place}[{index}]") for index, value in enumerate(values)]

    def entries(self, values: Dict[object, object], place: str) -> Dict[str, object]:
        return {self.key(key, place): self.convert(value, _member(place, key)) for key, value in values.items()}

    def key(self, key: object, place: str) -> str:
        """The text that `json` makes of a key; more types of keys are accepted."""
        if isinstance(key, str):
            return str.__str__(key)
        if key is None or isinstance(key, bool):
            return json.dumps(key)
        if isinstance(key, int) and is_too_long(int(key)):
            raise _Misplaced(f"{place} has a whole number of some {digits_of(int(key))} digits as a key; make it text")
        if isinstance(key, (int, float)):
            return repr(int(key) if isinstance(key, int) else float(key))
        try:
            step = simpler(key) if not isinstance(key, (tuple, bytes)) else None
        except NotData:
            step = None
        if isinstance(step, (str, int, float)):
            return self.key(step, place)
        raise _Misplaced(f"{place} has {kind_of(key)} as a key; make it text")


def _member(place: str, key: object) -> str:
    text = json.dumps(key, ensure_ascii=False) if isinstance(key, str) else re.sub(r"\s+", " ", repr(key))
    return f"{place}[{text if len(text) <= 100 else text[:100] + '…'}]"
