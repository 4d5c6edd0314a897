"""Converts outputs that `json` cannot write, images among them, recognised by the names of their classes: no library of the
app is imported for this."""

from __future__ import annotations

import base64
import collections.abc
import io
import sys
from operator import attrgetter, methodcaller
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from banana_worker.values import array_values
from banana_worker.values.not_data import NotData, not_data


PNG_TYPE = "image/png"


def is_image(value: object) -> bool:
    """Whether the value is an image of PIL, by the names of its classes."""
    return any(base.__name__ == "Image" and base.__module__.partition(".")[0] == "PIL" for base in type(value).__mro__)


# Pixel formats of PNG. Any other (CMYK, HSV) is converted to RGB or RGBA.
_PNG_MODES = ("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA")


def png_bytes(image: Any) -> bytes:
    """The image as a PNG file."""
    if image.mode not in _PNG_MODES:
        image = image.convert("L" if image.mode == "F" else "RGB")
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def base64_png(image: Any) -> str:
    """The PNG file as base64 text, for an image among other values."""
    return base64.b64encode(png_bytes(image)).decode("ascii")


Converter = Callable[..., object]

# Takes one step from a value towards data. @raises NotData
Simpler = Callable[[object], object]


def simpler(value: object) -> object:
    """One step from a value towards data; its parts may need another. @raises NotData"""
    return _converter(type(value))(value)


def is_array(value: object) -> bool:
    """Whether `simpler` makes lists of its numbers: an array of numpy, a tensor of torch and the like."""
    return _converter(type(value)) in (array_values.numpy_list, array_values.torch_list, array_values.array_list)


def _converter(kind: type) -> Converter:
    convert = _known.get(kind)
    if convert is None:
        convert = _converter_for(kind) or _refuse
        if len(_known) >= _MAX_KNOWN:
            _known.clear()  # an app that makes classes as it runs must not fill the memory
        _known[kind] = convert
    return convert


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


def _numbers(value: Any) -> object:
    return list(bytes(value))


def _none(value: object) -> object:
    return None


def _decimal(value: Any) -> object:
    """A whole number stays exact; another one becomes the nearest float."""
    number = float(value)
    is_whole = abs(number) < float("inf") and value == value.to_integral_value()
    return int(value) if is_whole else number


def _sorted_list(value: Any) -> object:
    """Sorted, if the items have an order: the same set gives the same answer in every worker."""
    items = list(value)
    try:
        return sorted(items)
    except TypeError:
        return items


def _row_or_column(series: Any) -> object:
    """A dict if every value has its own name, as in a row of a table; else a list."""
    names = list(series.index)
    if names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return dict(zip(names, series.tolist()))
    return series.tolist()


_iso = methodcaller("isoformat")
_to_list = methodcaller("tolist")

# Keys: the first part of the module's name, and the name of the class or of a base of it.
_BY_NAME: Dict[Tuple[str, str], Converter] = {
    ("builtins", "bytes"): _numbers,
    ("builtins", "bytearray"): _numbers,
    ("builtins", "memoryview"): _numbers,
    ("builtins", "set"): _sorted_list,
    ("builtins", "frozenset"): _sorted_list,
    ("enum", "Enum"): attrgetter("value"),
    ("datetime", "datetime"): _iso,
    ("datetime", "date"): _iso,
    ("datetime", "time"): _iso,
    ("datetime", "timedelta"): methodcaller("total_seconds"),
    ("uuid", "UUID"): str,
    ("pathlib", "PurePath"): str,
    ("decimal", "Decimal"): _decimal,
    ("fractions", "Fraction"): float,
    ("ipaddress", "_IPAddressBase"): str,
    ("numpy", "ndarray"): array_values.numpy_list,
    ("numpy", "generic"): array_values.numpy_list,
    ("torch", "Tensor"): array_values.torch_list,
    ("pandas", "DataFrame"): methodcaller("to_dict", orient="records"),
    ("pandas", "Series"): _row_or_column,
    ("pandas", "Index"): _to_list,
    ("pandas", "Categorical"): _to_list,
    ("pandas", "NaTType"): _none,
    ("pandas", "NAType"): _none,
    ("PIL", "Image"): base64_png,
}


def _has(*names: str) -> Callable[[type], bool]:
    return lambda kind: all(hasattr(kind, name) for name in names)


def _is_abstractly(*kinds: type) -> Callable[[type], bool]:
    return lambda kind: issubclass(kind, kinds)


def _model_dict(value: Any) -> object:
    fields = value.dict()
    return fields["__root__"] if list(fields) == ["__root__"] else fields


def _by_name(fields_of: Callable[[Any], Iterable[Any]]) -> Converter:
    return lambda value: {field.name: getattr(value, field.name) for field in fields_of(value)}


def as_dict(value: object) -> object:
    """An object of fields, such as a dataclass or a model of pydantic, as a dict of them; any other value as it is."""
    return next((convert(value) for offers, convert in _WITH_FIELDS if offers(type(value))), value)


# Recognised by the methods of the class; the first that fits.
_WITH_FIELDS: Tuple[Tuple[Callable[[type], bool], Converter], ...] = (
    (_has("model_dump", "model_fields"), methodcaller("model_dump")),
    (_has("__fields__", "dict", "parse_obj"), _model_dict),
    (_has("__dataclass_fields__"), _by_name(lambda value: sys.modules["dataclasses"].fields(value))),
    (_has("__attrs_attrs__"), _by_name(attrgetter("__attrs_attrs__"))),
)
_BY_OFFER = (
    *_WITH_FIELDS,
    (_has("to_dicts"), methodcaller("to_dicts")),
    (_has("__array__"), array_values.array_list),
    (_is_abstractly(collections.abc.Mapping), dict),
    (_is_abstractly(collections.abc.MappingView, collections.abc.Sequence), list),
    (_is_abstractly(collections.abc.Set), _sorted_list),
    (_has("tolist"), _to_list),
)
