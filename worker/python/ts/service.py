"""The same as `mms.service`."""

from __future__ import annotations

from banana_worker.stand_in import names_of_module
from mms.service import PredictionException as PredictionException
from mms.service import Service as Service
from mms.service import emit_metrics as emit_metrics

__all__ = ["PredictionException", "Service", "emit_metrics"]

__getattr__ = names_of_module(__name__, __all__)
