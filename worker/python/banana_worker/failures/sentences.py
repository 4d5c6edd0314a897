"""Joins texts of other authors, with or without a full stop, to sentences of ours."""

from __future__ import annotations

from banana_worker.failures.thrown import is_a


def as_sentence(text: str) -> str:
    """`text` with one mark at its end: for the end of a message, or before another sentence."""
    return text if text.endswith((".", "!", "?", "…")) else text + "."


def kind_of(value: object) -> str:
    """The kind of a value, such as `an int`, for a sentence about a wrong value."""
    if value is None:
        return "None"
    if is_a(value, type):
        return "a class"
    return with_article(type(value).__name__)


def with_article(noun: str) -> str:
    """`noun` with `a` or `an` before it, if it takes one."""
    if noun == "bytes":
        return noun
    return ("an " if noun[:1].lower() in "aeio" else "a ") + noun
