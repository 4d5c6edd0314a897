"""The same as `mms.metrics.unit`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.metrics.unit import Units as Units

__all__ = ["Units"]

__getattr__ = names_of_module(__name__, __all__)
