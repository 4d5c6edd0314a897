"""The same as `mms.metrics.metric`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.metrics.metric import Metric as Metric

__all__ = ["Metric"]

__getattr__ = names_of_module(__name__, __all__)
