"""The same as `mms.metrics.metrics_store`."""

from mms.metrics.metrics_store import MetricsStore as MetricsStore
