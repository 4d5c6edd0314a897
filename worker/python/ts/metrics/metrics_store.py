"""The same as `mms.metrics.metrics_store`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.metrics.metrics_store import MetricsStore as MetricsStore

__all__ = ["MetricsStore"]

__getattr__ = names_of_module(__name__, __all__)
