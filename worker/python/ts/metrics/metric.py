"""The same as `mms.metrics.metric`."""

from mms.metrics.metric import Metric as Metric
