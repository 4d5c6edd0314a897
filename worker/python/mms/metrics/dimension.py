"""A label of a metric."""

from __future__ import annotations

from typing import Dict

from banana_worker.stand_in import names_of_module

__all__ = ["Dimension"]


class Dimension:
    """A name and a value, both as text: `Dimension("Layer", "conv1")`."""

    def __init__(self, name: object, value: object) -> None:
        self.name = str(name)
        self.value = str(value)

    def __str__(self) -> str:
        return "{}:{}".format(self.name, self.value)

    def __repr__(self) -> str:
        return "Dimension({!r}, {!r})".format(self.name, self.value)

    def to_dict(self) -> Dict[str, str]:
        return {"Name": self.name, "Value": self.value}


__getattr__ = names_of_module(__name__, __all__)
