"""One metric of a custom service."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Optional, Sequence, Union

from banana_worker.stand_in import names_of_module

from .dimension import Dimension
from .unit import Units

__all__ = ["Metric"]

Value = Union[int, float, str]

_LONG_NAMES = Units().units


class Metric:
    """A metric with its last value, or the sum of all values if `metric_method` is `counter`.

    As text it is the line that Multi Model Server's workers print. `request_id` names the requests that it belongs
    to.
    """

    def __init__(
        self,
        name: str,
        value: Value,
        unit: Optional[str],
        dimensions: Sequence[Dimension],
        request_id: Optional[str] = None,
        metric_method: Optional[str] = None,
    ) -> None:
        self.name = name
        self.value = value
        self.unit = _LONG_NAMES.get(unit, unit)
        self.dimensions = list(dimensions)
        self.request_id = request_id
        self.metric_method = metric_method
        self._short_unit = unit or ""

    def update(self, value: Value) -> None:
        """Adds the value to a counter; replaces that of any other metric."""
        if self.metric_method == "counter":
            self.value = self.value + value  # type: ignore[operator]
        else:
            self.value = value

    def __str__(self) -> str:
        dimensions = ",".join(str(dimension) for dimension in self.dimensions)
        about = "{}.{}:{}|#{}".format(self.name, self.unit, self.value, dimensions)
        where = "|#hostname:{},{}".format(os.uname().nodename, int(time.time()))
        return about + where + (",{}".format(self.request_id) if self.request_id else "")

    def to_dict(self) -> Dict[str, Any]:
        """The fields by the names that they have in Multi Model Server's JSON."""
        return {
            "MetricName": self.name,
            "Value": self.value,
            "Unit": self.unit,
            "Dimensions": [dimension.to_dict() for dimension in self.dimensions],
            "HostName": os.uname().nodename,
            "RequestId": self.request_id,
            "Timestamp": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        }


__getattr__ = names_of_module(__name__, __all__)
