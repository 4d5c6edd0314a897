"""The same as `mms.metrics.dimension`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.metrics.dimension import Dimension as Dimension

__all__ = ["Dimension"]

__getattr__ = names_of_module(__name__, __all__)
