"""The types of metrics, for `metric_type=` of the methods of `context.metrics`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.metrics.caching_metric import MetricTypes as MetricTypes

__all__ = ["MetricTypes"]

__getattr__ = names_of_module(__name__, __all__)
