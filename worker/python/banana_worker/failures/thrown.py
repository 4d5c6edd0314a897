"""Reads anything that an app raises or has among its names. Nothing here raises: such an object may have any
attributes, and each of them, its text and its class too, may raise when it is read."""

from __future__ import annotations

from typing import Any, List, Optional


def is_a(value: object, *classes: type) -> bool:
    """`isinstance` by the real type, not by `__class__`, which may be anything."""
    return issubclass(type(value), classes)


def is_whole(value: Any, least: int, most: int) -> bool:
    """Whether it is a whole number in these bounds, and no bool, which Python counts as one."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def text_of(thrown: object) -> Optional[str]:
    """Its text, as a plain `str`; None if it cannot be shown."""
    try:
        return str.__str__(str(thrown))
    except BaseException:
        return None


def described(thrown: BaseException) -> str:
    """The class and the text of an exception, as at the end of a traceback; only the class if the text is empty."""
    text = text_of(thrown)
    text = "an exception that cannot be shown" if text is None else text
    return "%s: %s" % (class_name(thrown), text) if text else class_name(thrown)


def shown(value: object) -> str:
    """Its `repr`, if it has one."""
    try:
        return str.__str__(repr(value))
    except BaseException:
        return "a value that cannot be shown"


def class_name(thrown: BaseException) -> str:
    return _NAME.__get__(type(thrown))


def class_package(thrown: BaseException) -> str:
    """The outermost package of the module that its class names as its own."""
    try:
        return str(_MODULE.__get__(type(thrown))).partition(".")[0]
    except BaseException:
        return ""


def class_names(thrown: BaseException) -> List[str]:
    """The names of its class and of the bases of that."""
    return [_NAME.__get__(base) for base in _BASES.__get__(type(thrown))]


def attribute(thrown: BaseException, name: str) -> Any:
    """None if there is no such attribute, or if reading it raises."""
    try:
        return getattr(thrown, name, None)
    except BaseException:
        return None


def traceback_of(thrown: BaseException) -> Any:
    return _TRACEBACK.__get__(thrown)


# The descriptors of Python itself, since a class may redefine these names.
_NAME: Any = vars(type)["__name__"]
_MODULE: Any = vars(type)["__module__"]
_BASES: Any = vars(type)["__mro__"]
_TRACEBACK: Any = vars(BaseException)["__traceback__"]
