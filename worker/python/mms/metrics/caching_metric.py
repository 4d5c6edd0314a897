"""Metrics that a handler of TorchServe makes once, when it loads, and measures in its calls."""

from __future__ import annotations

import enum
import logging
from typing import Callable, List, Optional, Sequence, Union

from .dimension import Dimension

# The public name, which `ts.metrics.metric_type_enum` has too.
__all__ = ["MetricTypes"]

# Measures in the batch that runs: the metric, its value, its dimensions, and the id of a request or None.
Measure = Callable[["CachingMetric", Union[int, float], List[Dimension], Optional[str]], None]

_LOGGER = logging.getLogger(__name__)


class MetricTypes(enum.Enum):
    """A counter adds its values up; the other two keep the last value of a batch."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class CachingMetric:
    """A metric with its name, type and unit, and the names of its dimensions. No `ModelName` is added."""

    def __init__(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str],
        metric_type: MetricTypes,
        measure: Measure,
    ) -> None:
        self.metric_name = metric_name
        self.unit = unit
        self.dimension_names = list(dimension_names)
        self.metric_type = metric_type
        self._measure = measure

    def add_or_update(
        self, value: Union[int, float], dimension_values: Sequence[object] = (), request_id: str = ""
    ) -> None:
        """Measures for the batch that runs, or only for its request with this id.

        As in TorchServe, a wrong number of dimensions and a counter that falls are logged, and fail no call.
        """
        names, values = self.dimension_names, list(dimension_values)
        if len(names) != len(values):
            _LOGGER.error("metric %s is not recorded: its dimensions are %s, not %s", self.metric_name, names, values)
        elif self.metric_type is MetricTypes.COUNTER and _is_negative(value):
            _LOGGER.error("metric %s is not recorded: a counter cannot fall by %s", self.metric_name, value)
        else:
            self._measure(self, value, [Dimension(*pair) for pair in zip(names, values)], request_id or None)

    def update(self, value: Union[int, float], request_id: str = "", dimensions: Sequence[Dimension] = ()) -> None:
        """Measures with other dimensions, which the metric has from now on."""
        self.dimension_names = [one.name for one in dimensions]
        self.add_or_update(value, [one.value for one in dimensions], request_id)


def _is_negative(value: object) -> bool:
    try:
        return bool(value < 0)  # type: ignore[operator]
    except Exception:
        return False  # it is not a number, and the store drops it
