"""The same as `mms.service`."""

from mms.service import PredictionException as PredictionException
from mms.service import Service as Service
from mms.service import emit_metrics as emit_metrics
