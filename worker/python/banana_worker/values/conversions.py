"""Converts outputs that `json` cannot write, recognised by the names of their classes: no library of the app is
imported for this."""

from __future__ import annotations

import collections.abc
import sys
from typing import Callable, Dict, Optional, Tuple

from banana_worker.values import array_values, images, table_values
from banana_worker.values.not_data import NotData, not_data

Converter = Callable[..., object]

# Takes one step from a value towards data. @raises NotData
Simpler = Callable[[object], object]


def simpler(value: object) -> object:
    """One step from a value towards data; its parts may need another. @raises NotData"""
    kind = type(value)
    convert = _known.get(kind)
    if convert is None:
        convert = _converter_for(kind) or _refuse
        if len(_known) >= _MAX_KNOWN:
            _known.clear()  # an app that makes classes as it runs must not fill the memory
        _known[kind] = convert
    return convert(value)


def simpler_without_bytes(value: object) -> object:
    """As `simpler`, for a format in which bytes are an error."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise NotData("is bytes; return text, such as base64, or a list of numbers")
    return simpler(value)


_MAX_KNOWN = 1000
_known: Dict[type, Converter] = {}


def _refuse(value: object) -> object:
    raise not_data(value)


def _converter_for(kind: type) -> Optional[Converter]:
    for base in kind.__mro__:
        convert = _BY_NAME.get((base.__module__.partition(".")[0], base.__name__))
        if convert is not None:
            return convert
    for offers, convert in _BY_OFFER:
        if offers(kind):
            return convert
    return None


def _iso(value: object) -> object:
    return value.isoformat()  # type: ignore[attr-defined]


def _seconds(value: object) -> object:
    return value.total_seconds()  # type: ignore[attr-defined]


def _enum_value(value: object) -> object:
    return value.value  # type: ignore[attr-defined]


def _none(value: object) -> object:
    return None


def _decimal(value: object) -> object:
    """A whole number stays exact; another one becomes the nearest float."""
    number = float(value)  # type: ignore[arg-type]
    is_whole = abs(number) < float("inf") and value == value.to_integral_value()  # type: ignore[attr-defined]
    return int(value) if is_whole else number  # type: ignore[call-overload]


def _sorted_list(value: object) -> object:
    """Sorted, if the items have an order: the same set gives the same answer in every worker."""
    items = list(value)  # type: ignore[call-overload]
    try:
        return sorted(items)
    except TypeError:
        return items


def _listed(value: object) -> object:
    return list(value)  # type: ignore[call-overload]


def _to_list(value: object) -> object:
    return value.tolist()  # type: ignore[attr-defined]


def _numbers(value: object) -> object:
    return list(bytes(value))  # type: ignore[call-overload]


# Keys: the first part of the module's name, and the name of the class or of a base of it.
_BY_NAME: Dict[Tuple[str, str], Converter] = {
    ("builtins", "bytes"): _numbers,
    ("builtins", "bytearray"): _numbers,
    ("builtins", "memoryview"): _numbers,
    ("builtins", "set"): _sorted_list,
    ("builtins", "frozenset"): _sorted_list,
    ("enum", "Enum"): _enum_value,
    ("datetime", "datetime"): _iso,
    ("datetime", "date"): _iso,
    ("datetime", "time"): _iso,
    ("datetime", "timedelta"): _seconds,
    ("uuid", "UUID"): str,
    ("pathlib", "PurePath"): str,
    ("decimal", "Decimal"): _decimal,
    ("fractions", "Fraction"): float,
    ("ipaddress", "_IPAddressBase"): str,
    ("numpy", "ndarray"): array_values.numpy_list,
    ("numpy", "generic"): array_values.numpy_list,
    ("torch", "Tensor"): array_values.torch_list,
    ("pandas", "DataFrame"): table_values.records,
    ("pandas", "Series"): table_values.row_or_column,
    ("pandas", "Index"): _to_list,
    ("pandas", "Categorical"): _to_list,
    ("pandas", "NaTType"): _none,
    ("pandas", "NAType"): _none,
    ("PIL", "Image"): images.base64_png,
}


def _has(*names: str) -> Callable[[type], bool]:
    return lambda kind: all(hasattr(kind, name) for name in names)


def _is_abstractly(*kinds: type) -> Callable[[type], bool]:
    return lambda kind: issubclass(kind, kinds)


def _model_dump(value: object) -> object:
    return value.model_dump()  # type: ignore[attr-defined]


def _model_dict(value: object) -> object:
    fields = value.dict()  # type: ignore[attr-defined]
    return fields["__root__"] if list(fields) == ["__root__"] else fields


def _dataclass_fields(value: object) -> object:
    fields = sys.modules["dataclasses"].fields(value)
    return {field.name: getattr(value, field.name) for field in fields}


def _attrs_fields(value: object) -> object:
    fields = type(value).__attrs_attrs__  # type: ignore[attr-defined]
    return {field.name: getattr(value, field.name) for field in fields}


def _to_dicts(value: object) -> object:
    return value.to_dicts()  # type: ignore[attr-defined]


# Recognised by the methods of the class; the first that fits.
_BY_OFFER: Tuple[Tuple[Callable[[type], bool], Converter], ...] = (
    (_has("model_dump", "model_fields"), _model_dump),
    (_has("__fields__", "dict", "parse_obj"), _model_dict),
    (_has("__dataclass_fields__"), _dataclass_fields),
    (_has("__attrs_attrs__"), _attrs_fields),
    (_has("to_dicts"), _to_dicts),
    (_has("__array__"), array_values.array_list),
    (_is_abstractly(collections.abc.Mapping), dict),
    (_is_abstractly(collections.abc.MappingView, collections.abc.Sequence), _listed),
    (_is_abstractly(collections.abc.Set), _sorted_list),
    (_has("tolist"), _to_list),
)
