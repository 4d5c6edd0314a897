"""The same as `mms.service`."""

from mms.service import PredictionException as PredictionException
