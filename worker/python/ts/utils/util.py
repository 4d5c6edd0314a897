"""Functions for handlers of TorchServe: the error of `mms.service`, and names for the numbers of classes."""

from __future__ import annotations

import inspect
import json
import os
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

from banana_worker.stand_in import names_of_module
from mms.service import PredictionException as PredictionException

__all__ = ["PredictionException", "list_classes_from_module", "load_label_mapping", "map_class_to_label"]


def list_classes_from_module(module: ModuleType, parent_class: Optional[type] = None) -> List[Any]:
    """The classes that a module itself defines, in the order of their names: all of them, or those below a class."""
    defined = [one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == module.__name__]
    return [one for one in defined if parent_class is None or issubclass(one, parent_class)]


def load_label_mapping(mapping_file_path: str) -> Optional[Dict[str, Any]]:
    """The names of classes by their numbers, which are texts: the JSON of a file such as `index_to_name.json`.

    If a class has a list of names, the last counts; an object with `object_type_names` numbers the names of that
    list. Returns None and logs a warning if there is no such file. Raises ValueError if it is not an object.
    """
    if not os.path.isfile(mapping_file_path):
        import logging

        logging.getLogger(__name__).warning("%s does not exist, so classes have no names", mapping_file_path)
        return None
    with open(mapping_file_path, encoding="utf-8") as file:
        mapping = json.load(file)
    if not isinstance(mapping, dict):
        raise ValueError("{}: the names of classes must be an object, from number to name".format(mapping_file_path))
    numbered = mapping.get("object_type_names")
    if isinstance(numbered, list):
        return {str(number): name for number, name in enumerate(numbered)}
    return {number: name[-1] if isinstance(name, list) else name for number, name in mapping.items()}


def map_class_to_label(
    probs: Sequence[Sequence[Any]],
    mapping: Optional[Dict[str, Any]] = None,
    lbl_classes: Optional[Sequence[Sequence[Any]]] = None,
) -> List[Dict[str, Any]]:
    """For each row of probabilities, a dict of them by the names of their classes; by the numbers without `mapping`.

    `lbl_classes` has the classes of each row; without it they are numbered in their order.
    """
    rows = [range(len(row)) for row in probs] if lbl_classes is None else lbl_classes
    return [
        {str(one) if mapping is None else mapping[str(one)]: prob for one, prob in zip(classes, row)}
        for classes, row in zip(rows, probs)
    ]


__getattr__ = names_of_module(__name__, __all__)
